// morph: change an element's children to match new HTML, and keep the state of the reader:
// focus, typed text, selected boxes, unfolded details, scroll position.

export function morph(element, html) {
  const made = document.createElement("template");
  made.innerHTML = html;
  const busy = document.activeElement;
  children(element, made.content);
  // a row that was moved has lost the focus
  if (busy !== document.activeElement && element.contains(busy)) busy.focus({ preventScroll: true });
}

function key(node) {
  return node.nodeType === Node.ELEMENT_NODE ? node.id || node.dataset.key || null : null;
}

function alike(old, made) {
  return old.nodeType === made.nodeType && old.nodeName === made.nodeName && key(old) === key(made);
}

function children(parent, made) {
  const keyed = new Map();
  for (const child of parent.childNodes) {
    const name = key(child);
    if (name !== null) keyed.set(name, child);
  }
  const coming = new Set([...made.childNodes].map(key));
  let old = parent.firstChild;
  for (const fresh of [...made.childNodes]) {
    // remove old elements first, so that the next ones match
    while (old && key(old) !== null && !coming.has(key(old))) {
      const next = old.nextSibling;
      old.remove();
      old = next;
    }
    const name = key(fresh);
    const match = name !== null ? keyed.get(name) : null;
    if (match && alike(match, fresh)) {
      keyed.delete(name);
      if (match === old) old = old.nextSibling;
      else parent.insertBefore(match, old);
      update(match, fresh);
    } else if (old && name === null && key(old) === null && alike(old, fresh)) {
      const next = old.nextSibling;
      update(old, fresh);
      old = next;
    } else {
      parent.insertBefore(fresh, old);
    }
  }
  while (old) {
    const next = old.nextSibling;
    old.remove();
    old = next;
  }
}

function update(old, fresh) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
    return;
  }
  if (old.hasAttribute("data-keep") || fresh.hasAttribute("data-same")) return;
  attributes(old, fresh);
  children(old, fresh);
}

const READERS_OWN = { DETAILS: ["open"], DIALOG: ["open"], INPUT: ["value", "checked"], OPTION: ["selected"] };

function attributes(old, fresh) {
  const own = READERS_OWN[old.nodeName] ?? [];
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && !own.includes(name)) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (!own.includes(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
}
