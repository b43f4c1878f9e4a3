/* The time that all charts show, and the figures of a stream over that time.
 *
 * There is one window of time for the whole page: the last ten minutes, hour and so on, which moves with the clock ("live"), or
 * a fixed piece of the past ("looking back"). A zoom in any chart, the buttons and the arrow keys change it for all.
 *
 * Figures are those of GET /history: one request fills the window, and then once a step a request from the last point on brings
 * what is new. So the live picture and the one of last night are the same figures, at the same resolution. The last point may be
 * of a step that has not ended; the next answer replaces it. Points that have left the window are dropped, and MOST bounds them
 * whatever the server sends. */
"use strict";

(() => {
    const MOST = 4000; // points that are held
    const RANGES = [["10 min", 600], ["1 h", 3600], ["6 h", 21600], ["1 day", 86400], ["7 days", 604800], ["all", 0]];
    const SHORTEST = 10; // seconds that can be shown

    const LENGTHS = [60, 120, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400, 172800]; // of a window that is not filled yet

    const now = () => page.now();

    /* span: seconds shown while live, 0 all; oldest: the first time for which any stream has figures, first: that within span. */
    const time = {live: true, span: 600, from: 0, to: 0, oldest: 0, first: 0, changed: []};
    page.time = time;
    time.ranges = RANGES;

    time.window = () => {
        if (!time.live)
            return [time.from, time.to];
        const to = now();
        if (!time.span)
            return [Math.min(time.oldest || to - 600, to - LENGTHS[0]), to];
        return [to - Math.min(time.span, (time.first && LENGTHS.find((l) => l >= to - time.first)) || time.span), to];
    };

    /* A stream that has just begun fills a sliver of its window: the window grows with it, in steps, until it has its length. */
    time.growing = () => time.live && time.span > 0 && time.first > now() - time.span + 5;

    const notify = () => {
        for (const f of time.changed)
            f();
    };

    time.follow = (span) => {
        time.live = true;
        time.first = 0;
        if (span !== undefined)
            time.span = span;
        notify();
    };

    time.show = (from, to) => {
        const end = now(), width = Math.max(to - from, SHORTEST);
        to = Math.min(to, end);
        Object.assign(time, {live: false, from: to - width, to});
        notify();
    };

    time.move = (part) => {
        const [from, to] = time.window(), width = to - from;
        if (time.live && part > 0)
            return;
        if (part > 0 && to + part * width >= now())
            return time.span && Math.abs(width - time.span) > 1 ? time.show(now() - width, now()) : time.follow();
        time.show(from + part * width, to + part * width);
    };

    time.zoom = (factor) => {
        const [from, to] = time.window(), half = Math.max((to - from) * factor, SHORTEST) / 2, middle = (from + to) / 2;
        if (time.live || middle + half > now())
            return time.show(now() - 2 * half, now());
        time.show(middle - half, middle + half);
    };

    /* ---- figures */

    const empty = () => ({t: [], values: {}, low: {}, high: {}, step: 1});

    const cut = (columns, from, to) => {
        for (const name of Object.keys(columns))
            columns[name] = columns[name].slice(from, to);
    };

    /* Appends `more` to `held` from the first time of `more` on, and forgets what is older than `from`. */
    page.append = (held, more, from) => {
        if (!more.t.length)
            return held;
        const first = more.t[0];
        let keep = held.t.length;
        while (keep > 0 && held.t[keep - 1] >= first)
            keep--;
        let skip = 0;
        while (skip < keep && held.t[skip] < from)
            skip++;
        skip = Math.max(skip, keep + more.t.length - MOST);
        const joined = {t: held.t.slice(skip, keep).concat(more.t), step: more.step || held.step};
        const blank = new Array(Math.max(keep - skip, 0)).fill(null);
        for (const part of ["values", "low", "high"]) {
            joined[part] = {};
            for (const [name, column] of Object.entries(more[part] || {}))
                joined[part][name] = (held[part][name] ? held[part][name].slice(skip, keep) : blank).concat(column);
        }
        if (joined.t.length > MOST) {
            const over = joined.t.length - MOST;
            joined.t = joined.t.slice(over);
            for (const part of ["values", "low", "high"])
                cut(joined[part], over);
        }
        return joined;
    };

    page.series = (stream) => ({stream, held: empty(), whole: false, due: 0, asked: 0});

    page.stale = (series) => {
        series.whole = false;
        series.due = 0;
    };

    /* Brings `series` up to the window; returns whether anything is new. */
    page.refresh = async (series) => {
        if (Date.now() < series.due)
            return false;
        series.due = Date.now() + 8000; // one request at a time
        try {
            return await fetched(series, ++series.asked);
        } catch (error) {
            series.due = Date.now() + 1000;
            throw error;
        }
    };

    /* The first time for which a figure is known, 0 without any. */
    const begun = (answer) => answer.t[Math.min(...Object.values(answer.values).map((c) => c.findIndex(page.known)).filter((i) => i >= 0))] || 0;

    const fetched = async (series, turn) => {
        const [from, to] = time.window();
        const last = series.held.t.at(-1);
        if (series.whole && time.live && last !== undefined) {
            const more = await page.get("/history", {stream: series.stream, from: last, step: series.held.step});
            if (turn !== series.asked)
                return false;
            series.held = page.append(series.held, more, (time.span ? to - time.span : from) - series.held.step);
        } else {
            const all = time.live && !time.span, begin = time.live ? to - time.span : from;
            const query = {stream: series.stream, from: all ? 0 : begin};
            const answer = await page.get("/history", time.live ? query : {...query, to});
            if (turn !== series.asked)
                return false;
            series.held = page.append(empty(), answer, 0);
            const first = begun(answer);
            if (all && first)
                time.oldest = time.oldest ? Math.min(time.oldest, first) : first;
            if (time.live && first)
                time.first = time.first ? Math.min(time.first, first) : first;
            series.whole = true;
        }
        series.due = time.live ? Date.now() + 1000 * Math.min(Math.max(series.held.step / 4, 0.9), 60) : Infinity;
        return true;
    };

    /* Index of the point nearest to `t`, -1 without any. */
    page.nearest = (held, t) => {
        let low = 0, high = held.t.length - 1;
        if (high < 0)
            return -1;
        while (low < high) {
            const middle = (low + high) >> 1;
            if (held.t[middle] < t)
                low = middle + 1;
            else
                high = middle;
        }
        return low > 0 && t - held.t[low - 1] < held.t[low] - t ? low - 1 : low;
    };
})();
