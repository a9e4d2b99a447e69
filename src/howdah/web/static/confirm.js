// confirm: ask before a form is sent, with the text of its button's data-ask.

export function confirmations() {
  document.addEventListener("submit", (event) => {
    const ask = event.submitter?.dataset.ask ?? event.target.dataset.ask;
    if (ask && !window.confirm(ask)) event.preventDefault();
  });
}
