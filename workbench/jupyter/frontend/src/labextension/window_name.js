// The name of this browser window: the same after its page was loaded again, another in a second window.

import { newController } from "../steering.js";

const KEY = "workbench.window";

/** True where no other window holds the name, which this one then does until it goes. */
function hold(name, locks) {
  // Only a page of this machine or with TLS has locks.
  if (!locks) return Promise.resolve(true);
  return new Promise((done) => {
    locks.request(`${KEY}:${name}`, { ifAvailable: true }, (lock) => {
      done(Boolean(lock));
      return lock && new Promise(() => {});
    });
  });
}

/** @param {{sessionStorage: Storage, navigator: {locks?: LockManager}}} window of the browser */
export async function windowName(window = globalThis) {
  const { locks } = window.navigator;
  const name = newController();
  try {
    const kept = window.sessionStorage.getItem(KEY);
    // A window that is duplicated takes a copy of the storage along, the name too.
    if (/^[0-9a-f]+$/.test(kept) && (await hold(kept, locks))) return kept;
    window.sessionStorage.setItem(KEY, name);
  } catch {
    // No storage here: a page that is loaded again is another window.
  }
  await hold(name, locks);
  return name;
}
