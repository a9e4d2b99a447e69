// keys: `/` searches, arrows move through rows, `g` and a letter opens a page, `?` shows help.

const GO = { o: "/", j: "/jobs", f: "/failures", w: "/workers", t: "/types", l: "/limits", s: "/schedules", h: "/health" };

export function keys() {
  let going = false;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.closest("input:not([type=checkbox]), select, textarea");
    if (typing) {
      if (event.key === "Escape") typing.blur();
      return;
    }
    if (going && GO[event.key]) {
      location.href = document.querySelector('meta[name="howdah-root"]').content + GO[event.key];
      return;
    }
    going = event.key === "g";
    const action = ACTIONS[event.key];
    if (action && action(event) !== false) event.preventDefault();
  });
}

const ACTIONS = {
  "/": () => {
    const find = document.querySelector(".find input");
    if (find === null) return false;
    find.focus();
    find.select();
  },
  "?": () => {
    const help = document.getElementById("help");
    if (!help.open) help.showModal();
  },
  ArrowDown: () => step(1),
  ArrowUp: () => step(-1),
  " ": (event) => toggle(event),
};

function rows() {
  return [...document.querySelectorAll("main tbody tr")].filter((row) => row.querySelector("a"));
}

function step(by) {
  const all = rows();
  if (!all.length || document.querySelector("dialog[open]")) return false;
  const now = all.findIndex((row) => row.contains(document.activeElement));
  const next = now < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(now + by, 0), all.length - 1);
  all[next].querySelector("a").focus();
}

function toggle(event) {
  const box = event.target.closest("tr")?.querySelector("input[type=checkbox]");
  if (!box || event.target === box) return false;
  box.click();
}
