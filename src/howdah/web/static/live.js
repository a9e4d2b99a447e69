// live: read new versions of the page from the stream, and change only what differs.

import { morph } from "./morph.js";

const LIVE = "This page is live";
const SILENT = "The server does not answer; this page may be old";
const SILENT_AFTER = 4000; // ms; a stream that reconnects sooner is not reported
const meta = (name) => document.querySelector(`meta[name="${name}"]`)?.content;

export function live(drawn) {
  const page = meta("howdah-live");
  const indicator = document.getElementById("live-status");
  if (page === undefined || indicator === null) return;
  let stream = null;
  let silent = null;

  function show(on, sentence) {
    clearTimeout(silent);
    silent = null;
    indicator.classList.toggle("on", on);
    indicator.classList.toggle("off", !on);
    if (indicator.title === sentence) return;
    indicator.title = sentence;
    if (!on || indicator.textContent) indicator.textContent = sentence; // no text while the page is live
  }

  function open() {
    if (stream !== null || document.hidden) return;
    stream = new EventSource(`${meta("howdah-root")}/live?page=${encodeURIComponent(page)}`);
    stream.onopen = () => show(true, LIVE);
    stream.onerror = () => {
      silent ??= setTimeout(() => show(false, SILENT), SILENT_AFTER);
      if (stream?.readyState === EventSource.CLOSED) {
        close();
        setTimeout(open, 3000);
      }
    };
    stream.addEventListener("late", (event) => show(false, `This page is old: ${event.data}`));
    stream.addEventListener("draw", (event) => {
      const main = document.getElementById("main");
      morph(main, event.data);
      drawn(main);
      show(true, LIVE);
      indicator.classList.remove("beat");
      void indicator.getBoundingClientRect();
      indicator.classList.add("beat");
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
