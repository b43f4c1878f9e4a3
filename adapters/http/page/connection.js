/* Requests to svmstream-http, its events, and whether it answers.
 *
 * All requests go through page.request: it adds the token, bounds the time, and turns a problem document into an error with its
 * code and detail. A request that gets no answer at all marks the connection as lost: from then on turn.js asks for the streams
 * alone, at growing intervals, until one answer arrives.
 *
 * Events are read with fetch rather than with EventSource, which cannot send a token. One reader serves all streams: browsers
 * open six connections to a server at most. While nobody looks at the page the reader is closed; Last-Event-ID then brings what
 * was published in between. */
"use strict";

(() => {
    const PATIENCE = 8000; // milliseconds that a request may take
    const MOST_PENDING = 4 << 20; // characters of one event; a longer one ends the connection

    const SILENCE = 45000; // of events: comments arrive every 15 s, so after this the connection is dead

    /* The server's clock: that of the viewer may be hours off, and all figures have the server's times. Each answer carries its
     * time in whole seconds, so it bounds the difference of the clocks from both sides; the bounds of all answers together are
     * much closer than a second. Bounds that exclude each other mean that a clock was set: they begin with this answer then. */
    const clock = {low: -Infinity, high: Infinity};
    const compare = (response, sent) => {
        const second = Date.parse(response.headers.get("Date") || "");
        if (!page.known(second))
            return;
        const low = second - Date.now(), high = second + 1000 - sent, disjoint = low > clock.high || high < clock.low;
        clock.low = disjoint ? low : Math.max(clock.low, low);
        clock.high = disjoint ? high : Math.min(clock.high, high);
    };
    page.now = () => (Date.now() + (page.known(clock.low) && !(clock.low <= 0 && clock.high >= 0) ? (clock.low + clock.high) / 2 : 0)) / 1000;

    const state = {lostSince: 0, token: "", refused: false}; // refused: nothing is asked until there is another token
    try {
        state.token = sessionStorage.getItem("token") || "";
    } catch { /* a browser may forbid it: the token lasts as long as the page then */
    }

    page.connection = state;
    page.onToken = () => {};

    page.useToken = (token) => {
        state.token = token;
        state.refused = false;
        try {
            sessionStorage.setItem("token", token);
        } catch { /* as above */
        }
    };

    const headers = (more) => (state.token ? {...more, Authorization: "Bearer " + state.token} : more);

    const problem = async (response) => {
        let found = {};
        try {
            found = await response.json();
        } catch { /* an answer of a proxy, say */
        }
        const error = new Error(found.detail || found.title || "the server answered with status " + response.status);
        error.status = response.status;
        error.code = found.code;
        return error;
    };

    page.request = async (method, path, body) => {
        const end = new AbortController(), timer = setTimeout(() => end.abort(), PATIENCE), sent = Date.now();
        let response;
        try {
            const type = body === undefined ? {} : {"Content-Type": "application/json"};
            response = await fetch(path, {
                method, headers: headers({Accept: "application/json", ...type}), body: body === undefined ? undefined : JSON.stringify(body),
                signal: end.signal, cache: "no-store", credentials: "omit",
            });
            state.lostSince = 0;
            compare(response, sent);
            if (response.status === 401) {
                state.refused = true; // each attempt more would count against this address
                page.onToken();
            }
            if (!response.ok)
                throw await problem(response);
            return response.status === 204 ? {} : await response.json();
        } catch (error) {
            if (!response) {
                state.lostSince = state.lostSince || Date.now();
                error.lost = true;
            }
            throw error;
        } finally {
            clearTimeout(timer);
        }
    };

    page.get = (path, query) => {
        const words = Object.entries(query || {}).filter(([, value]) => value !== undefined && value !== "");
        const text = words.map(([name, value]) => encodeURIComponent(name) + "=" + encodeURIComponent(value)).join("&");
        return page.request("GET", text ? path + "?" + text : path);
    };

    /* Asks when it is due: `holder[name]` is the time of the next question, 0 at once. One question is on its way at a time, and
     * one that failed is asked again soon. */
    page.paced = async (holder, name, every, ask) => {
        if (Date.now() < (holder[name] || 0))
            return;
        const mine = holder[name] = Date.now() + PATIENCE;
        const next = (pause) => {
            if (holder[name] === mine) // else somebody wants it at once, after a change
                holder[name] = Date.now() + pause;
        };
        try {
            await ask();
            next(every);
        } catch (error) {
            next(Math.min(every, 3000));
            throw error;
        }
    };

    /* ---- server-sent events */

    const event = (block, deliver) => {
        let kind = "message", data = [];
        for (const line of block.split("\n")) {
            const at = line.indexOf(":"), name = at < 0 ? line : line.slice(0, at);
            const value = at < 0 ? "" : line.slice(at + 1).replace(/^ /, "");
            if (name === "event")
                kind = value;
            else if (name === "data")
                data.push(value);
            else if (name === "id")
                state.lastEvent = value;
        }
        if (data.length)
            deliver(kind, JSON.parse(data.join("\n")));
    };

    const read = async (response, deliver, end) => {
        const reader = response.body.getReader(), decoder = new TextDecoder();
        let pending = "";
        for (;;) {
            const timer = setTimeout(() => end.abort(), SILENCE);
            const {done, value} = await reader.read().finally(() => clearTimeout(timer));
            if (done)
                return;
            pending = (pending + decoder.decode(value, {stream: true})).replace(/\r\n?/g, "\n");
            for (let at; (at = pending.indexOf("\n\n")) >= 0; pending = pending.slice(at + 2))
                event(pending.slice(0, at), deliver);
            if (pending.length > MOST_PENDING)
                throw new Error("an event of more than 4 MB");
        }
    };

    const seen = () => new Promise((resolve) => {
        if (!document.hidden)
            return resolve();
        document.addEventListener("visibilitychange", resolve, {once: true});
    });

    /* Reads events for ever. `again` is called after each new beginning: what was published while nobody listened may be more
     * than the server's ring holds. */
    page.listen = async (path, deliver, again) => {
        for (let pause = 500, first = true;; first = false) {
            await seen();
            while (state.refused)
                await new Promise((resolve) => setTimeout(resolve, 500));
            const end = new AbortController();
            const stop = () => document.hidden && end.abort();
            document.addEventListener("visibilitychange", stop);
            try {
                const last = state.lastEvent ? {"Last-Event-ID": state.lastEvent} : {};
                const response = await fetch(path, {
                    headers: headers({Accept: "text/event-stream", ...last}), signal: end.signal, cache: "no-store", credentials: "omit",
                });
                state.refused = state.refused || response.status === 401;
                if (response.ok) {
                    pause = 500;
                    if (!first)
                        again();
                    await read(response, deliver, end);
                }
            } catch { /* the next turn tries again */
            } finally {
                document.removeEventListener("visibilitychange", stop);
                end.abort();
            }
            await new Promise((resolve) => setTimeout(resolve, pause));
            pause = Math.min(2 * pause, 10000);
        }
    };
})();
