// live: take the page anew from the server's stream, and change only what differs.

import { morph } from "./morph.js";

const LIVE = "This page is live";
const SILENT = "The server does not answer; this page may be old";
const PATIENCE = 4000; // a stream that ends now and then, and is opened again, is no news
const meta = (name) => document.querySelector(`meta[name="${name}"]`)?.content;

export function live(drawn) {
  const page = meta("howdah-live");
  const pulse = document.getElementById("pulse");
  if (page === undefined || pulse === null) return;
  let stream = null;
  let silent = null;

  function say(on, sentence) {
    clearTimeout(silent);
    silent = null;
    pulse.classList.toggle("on", on);
    pulse.classList.toggle("off", !on);
    if (pulse.title === sentence) return;
    pulse.title = sentence;
    if (!on || pulse.textContent) pulse.textContent = sentence; // as long as all is well, no words
  }

  function open() {
    if (stream !== null || document.hidden) return;
    stream = new EventSource(`${meta("howdah-root")}/live?page=${encodeURIComponent(page)}`);
    stream.onopen = () => say(true, LIVE);
    stream.onerror = () => {
      silent ??= setTimeout(() => say(false, SILENT), PATIENCE);
      if (stream?.readyState === EventSource.CLOSED) {
        close();
        setTimeout(open, 3000);
      }
    };
    stream.addEventListener("late", (event) => say(false, `This page is old: ${event.data}`));
    stream.addEventListener("draw", (event) => {
      const main = document.getElementById("main");
      morph(main, event.data);
      drawn(main);
      say(true, LIVE);
      pulse.classList.remove("beat");
      void pulse.getBoundingClientRect();
      pulse.classList.add("beat");
      document.dispatchEvent(new CustomEvent("howdah:drawn"));
    });
  }

  function close() {
    stream?.close();
    stream = null;
  }

  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  window.addEventListener("pagehide", close);
  window.addEventListener("pageshow", open);
  open();
}
