// select: how many rows are ticked, all at once, and a list that stands still meanwhile.
// The bar is shown while something is ticked. Without this script it is always shown, and the boxes
// and the buttons work as a plain form.

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
  const ticked = list.filter((box) => box.checked).length;
  const all = document.getElementById("tick-all");
  all.checked = ticked > 0 && ticked === list.length;
  all.indeterminate = ticked > 0 && ticked < list.length;
  // what somebody has ticked must not be pushed off the page by newer jobs
  document.getElementById("rows").toggleAttribute("data-keep", ticked > 0);
  document.getElementById("bar").classList.toggle("shown", ticked > 0);
  const said = ticked ? `${ticked} ticked, the list stands still:` : "Tick jobs to act on them:";
  const status = document.getElementById("ticked");
  if (status.textContent !== said) status.textContent = said;
  for (const control of document.querySelectorAll("#act button, #act input:not([type=hidden])")) {
    control.disabled = !ticked;
  }
}
