// times: exact moments in the reader's own time zone; the server writes them in UTC.

const format = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

export function times(root) {
  for (const time of root.querySelectorAll("time[data-local]")) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    time.title = time.dateTime;
    const said = format.format(at);
    if (time.textContent !== said) time.textContent = said;
  }
}
