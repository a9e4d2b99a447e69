// live: take the page anew from the server's stream, and change only what differs.

import { morph } from "./morph.js";

const meta = (name) => document.querySelector(`meta[name="${name}"]`)?.content;

export function live(drawn) {
  const page = meta("howdah-live");
  const pulse = document.getElementById("pulse");
  if (page === undefined || pulse === null) return;
  let stream = null;

  function open() {
    if (stream !== null || document.hidden) return;
    stream = new EventSource(`${meta("howdah-root")}/live?page=${encodeURIComponent(page)}`);
    stream.onopen = () => pulse.classList.replace("off", "on") || pulse.classList.add("on");
    stream.onerror = () => {
      pulse.classList.remove("on");
      pulse.classList.add("off");
      pulse.title = "The server does not answer; this page may be old";
      if (stream?.readyState === EventSource.CLOSED) {
        close();
        setTimeout(open, 3000);
      }
    };
    stream.addEventListener("draw", (event) => {
      const main = document.getElementById("main");
      morph(main, event.data);
      drawn(main);
      pulse.title = "This page is live";
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
  open();
}
