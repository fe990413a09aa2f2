// The server extension (workbench/jupyter/server) as a page uses it: for news while the kernel has none, and for
// requests to runs. Where the extension is missing (another front end, disabled) everything goes through the kernel alone.

import { unseal } from "./wire.js";

const API = "workbench/api";
// Missing or forbidden now, it will hardly be there in a second; a restart of the server takes some.
const ABSENT_MS = 60000;
const TROUBLE_MS = 3000;
const WAIT_SECONDS = 5;
const GLANCE_MS = 50;
// For the run to begin; what it has begun is waited for until it is done, as workbench/store/requests.py does.
const BEGIN_WITHIN_MS = 60000;
// Once it feeds the page: as often as curves need to look alive; before that, to learn whether there is news at all.
const FEED_EVERY_MS = 300;
const LOOK_EVERY_MS = 1000;
// Three periods of the kernel's thread: what it is about to say itself needs no resync afterwards.
const PRECEDENCE_MS = 300;

/** States after which no other answer comes. */
export const DONE = ["done", "refused", "late"];

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

/**
 * Address of the page's Jupyter server with a slash at its end, or null where the page is of something else, or its
 * server says that the extension is not there.
 */
export function baseOf(page) {
  try {
    const { baseUrl, appVersion, workbench } = JSON.parse(page.getElementById("jupyter-config-data").textContent);
    // JupyterLab and Notebook pass on what extensions have to say; others (Voila) may have it without a word.
    if (appVersion && !workbench) return null;
    const { origin } = page.location;
    const base = new URL(baseUrl, origin);
    // Elsewhere the session's cookie does not count.
    return typeof baseUrl === "string" && base.origin === origin ? base.href.replace(/\/*$/, "/") : null;
  } catch {
    return null;
  }
}

/** The token that proves to the server that a request is of its own page; the first is of the longest path. */
export function xsrfOf(cookies) {
  return /(?:^|;\s*)_xsrf=([^;]*)/.exec(cookies)?.[1] ?? "";
}

/** What was answered; null where the extension is not there, or not for us. */
async function jsonOf(response) {
  try {
    return response?.ok ? await response.json() : null;
  } catch {
    return null;
  }
}

/** Questions and requests to the extension. */
export class Server {
  /**
   * @param {string | null} base see baseOf
   * @param {object} page what it needs of the page, and what tests replace
   */
  constructor(base, { cookies, fetch = (...all) => globalThis.fetch(...all), now = Date.now, rest = pause }) {
    Object.assign(this, { base, cookies, fetch, now, rest });
    this.absentUntil = -Infinity;
    this.closed = false;
  }

  get usable() {
    return this.base !== null && this.now() >= this.absentUntil;
  }

  /**
   * All runs, those under way first.
   * @param {number | null} most how many of them; null for as many as the server tells
   * @returns {Promise<{runs: object[], counts: object} | null>} null when it cannot tell
   */
  async runs(most = null) {
    const response = this.usable ? await this.#ask(most === null ? "runs" : `runs?most=${most}`) : null;
    return jsonOf(response);
  }

  /** What a run's text says (workbench/jupyter/server/rows.py): `rows`, `find` or `facts`; null when it cannot tell. */
  async rows(name, what, query) {
    const response = this.usable ? await this.#ask(`runs/${name}/${what}?${new URLSearchParams(query)}`) : null;
    return response?.ok ? response.json() : null;
  }

  /** @returns {Promise<{header: object, block: DataView} | null>} null when it cannot tell */
  async news(names, since, extra) {
    const query = new URLSearchParams(since ? { since } : {});
    for (const name of names) query.append("run", name);
    for (const name of extra) query.append("extra", name);
    const response = await this.#ask(`telemetry?${query}`);
    return response?.ok ? unseal(new DataView(await response.arrayBuffer())) : null;
  }

  /**
   * Asks a run for something and waits for its answer.
   * @param {string | undefined} name of the run here
   * @param {object} request as workbench/client/steering.py has it, answers too
   * @param {(answer: object) => void} said called when the run was asked, and when it has begun
   * @param {boolean} leaving the page goes away
   * @returns {Promise<object | null>} the last answer; null: ask the kernel
   */
  async steer(name, request, said = () => {}, leaving = false) {
    if (!name || !this.usable) return null;
    const path = `runs/${name}/steer`;
    const answer = await jsonOf(await this.#ask(path, { method: "POST", body: JSON.stringify(request), keepalive: leaving }));
    if (answer?.state !== "asked") return answer;
    said(answer);
    return this.#answer(`${path}/${answer.request}`, said);
  }

  async #answer(path, said) {
    const until = this.now() + BEGIN_WITHIN_MS;
    let known = "";
    let begun = false;
    while (!this.closed && (begun || this.now() < until)) {
      // The server holds the question until there is an answer: none is a glance of the page late.
      const answer = await jsonOf(await this.#ask(`${path}?${new URLSearchParams({ wait: String(WAIT_SECONDS), said: known })}`));
      if (DONE.includes(answer?.state)) return answer;
      if (answer?.state === "accepted" && !known) {
        known = answer.state;
        said(answer);
      }
      if (answer) begun = answer.under_way;
      // A server that has trouble is left in peace for a moment.
      await this.rest(answer ? GLANCE_MS : TROUBLE_MS);
    }
    return { state: "late", text: "no answer yet; the request stands" };
  }

  async #ask(path, options = {}) {
    const headers = { "X-XSRFToken": xsrfOf(this.cookies()) };
    if (options.body) headers["Content-Type"] = "application/json";
    try {
      const response = await this.fetch(`${this.base}${API}/${path}`, { credentials: "same-origin", cache: "no-store", ...options, headers });
      // In JSON the extension itself says 404: of a run that is gone, and the others are still there.
      const absent = response.status === 404 && !response.headers.get("Content-Type")?.includes("json");
      if (absent || response.status === 403) this.absentUntil = this.now() + ABSENT_MS;
      else if (response.status >= 500) this.absentUntil = this.now() + TROUBLE_MS;
      return response;
    } catch {
      this.absentUntil = this.now() + TROUBLE_MS;
      return null;
    }
  }
}

/** Feeds a store from the server while the kernel does not. */
export class Relay {
  constructor(store, server) {
    this.store = store;
    this.server = server;
    this.asking = false;
    this.askedAt = server.now();
    // Names that the server has refused, and until when they are not asked for again.
    this.refused = { names: "", until: -Infinity };
  }

  /** To be called a few times a second; true when the store has changed. */
  async tick(names, extra) {
    const { store, server } = this;
    const period = store.strayed ? FEED_EVERY_MS : LOOK_EVERY_MS;
    const refused = names.join() === this.refused.names && server.now() < this.refused.until;
    const due = !refused && server.now() - this.askedAt >= period - 50;
    if (this.asking || !due || !names.length || !server.usable || !store.needsServer(server.now(), extra)) return false;
    this.asking = true;
    this.askedAt = server.now();
    try {
      const since = store.cursor;
      const answer = await server.news(names, since, extra);
      // It is there, and does not know one of the runs.
      if (!answer && server.usable) this.refused = { names: names.join(), until: server.now() + ABSENT_MS };
      if (!answer) return false;
      if (store.live && !store.strayed && answer.header.type !== "beat") await server.rest(PRECEDENCE_MS);
      return store.receive(answer.header, answer.block, server.now(), since).changed;
    } finally {
      this.asking = false;
    }
  }
}
