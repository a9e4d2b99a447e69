// select: counts the selected rows, selects all, and freezes the list meanwhile.
// The bar is shown while a row is selected. Without this script it is always shown, and boxes and
// buttons work as a plain form.

const boxes = () => [...document.querySelectorAll("#rows input[name=id]")];

export function select() {
  const bar = document.getElementById("bar");
  const all = document.getElementById("tick-all");
  if (!bar || !all) return;
  let last = null;
  all.classList.remove("hidden");
  all.addEventListener("change", () => {
    for (const box of boxes()) box.checked = all.checked;
    show();
  });
  document.addEventListener("click", (event) => {
    const box = event.target.closest?.("#rows input[name=id]");
    if (!box) return;
    if (event.shiftKey && last?.isConnected) between(last, box);
    last = box;
    show();
  });
  document.addEventListener("howdah:drawn", show);
  window.addEventListener("pageshow", show);
  show();
}

function between(one, other) {
  const list = boxes();
  const [from, to] = [list.indexOf(one), list.indexOf(other)].sort((a, b) => a - b);
  for (const box of list.slice(from, to + 1)) box.checked = other.checked;
}

function show() {
  const list = boxes();
  const selected = list.filter((box) => box.checked).length;
  const all = document.getElementById("tick-all");
  all.checked = selected > 0 && selected === list.length;
  all.indeterminate = selected > 0 && selected < list.length;
  // newer jobs must not push selected rows off the page
  document.getElementById("rows").toggleAttribute("data-keep", selected > 0);
  document.getElementById("bar").classList.toggle("shown", selected > 0);
  const text = selected ? `${selected} selected, the list is frozen:` : "Select jobs to act on them:";
  const status = document.getElementById("selected");
  if (status.textContent !== text) status.textContent = text;
  for (const control of document.querySelectorAll("#act button, #act input:not([type=hidden])")) {
    control.disabled = !selected;
  }
}
