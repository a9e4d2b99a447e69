// times: show exact times in the browser's time zone; the server sends UTC.

const format = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

export function times(root) {
  for (const time of root.querySelectorAll("time[data-local]")) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    time.title = time.dateTime;
    const text = format.format(at);
    if (time.textContent !== text) time.textContent = text;
  }
}
