/* The charts of a stream: quality, surprise, rate, latency, memory.
 *
 * Dygraphs draws; all else is here. Each chart has a line of text above it that names its lines by colour, dash and value (of the
 * time under the pointer, else the newest), bands for the alerts, and a summary in words for those who do not see it. All charts
 * of the page share one window of time (series.js) and all charts of a stream one pointer.
 *
 * A chart is made once and then only gets other values: nothing is created again, nothing moves. Dygraphs gets times in
 * milliseconds, as its axis of dates expects. Its own legend is off: it writes HTML, and a strict policy forbids its styles. */
"use strict";

(() => {
    const surprise = (p) => (page.known(p) ? Math.min(-Math.log10(Math.max(p, 1e-300)), 300) : null);
    const pick = (part, figure) => (held) => held[part]?.[figure] || held.values[figure];
    const mapped = (part, figure, f) => (held) => pick(part, figure)(held)?.map(f);

    /* The charts, from above to below. A line: name, column of the figures, class of its colour, dash. */
    const CHARTS = [
        {
            id: "quality", title: "Quality", value: (x, view) => (view.regress ? page.number(x) : page.share(x)), bands: (a) => a.kind === "quality",
            empty: "No labels yet. Quality begins with the first sample that has a label: y in a sample, or later by its id (svmstream ctl label id=17 y=ok).",
            unlearned: "No learner here (method none): novelty and rules watch this stream. Quality needs a method and labels.",
            byKey: "Each key has a quality of its own: the table of keys lists them, the worst first.",
            lines: [
                {name: (view) => (view.regress ? "error (rmse)" : "accuracy"), column: pick("values", "quality"), colour: 1},
                {name: () => "“same as before”", column: pick("values", "no_change"), colour: 2, dash: [7, 4]},
                {name: (view) => (view.regress ? "mean" : "commonest class"), column: pick("values", "majority"), colour: 3, dash: [2, 3]},
            ],
        },
        {
            id: "surprise", title: "Surprise, −log10 p", value: page.number, zero: true, bands: (a) => a.kind !== "quality" && a.kind !== "mute",
            empty: "No surprise yet. It is known where novelty is on (svmstream run --alert.budget 1/day), from the end of its warm-up on.",
            byKey: "Each key has a surprise and a level of its own. Their alerts are the bands here.",
            lines: [
                {name: () => "largest in the step", column: mapped("low", "smallest_p", surprise), colour: 1},
                {name: () => "level of an alert", column: pick("values", "alert_level"), colour: 2, dash: [7, 4], newest: true},
            ],
        },
        {
            id: "rate", title: "Rate, samples/s", value: page.rate, zero: true, empty: "No samples yet: svmstream feed FILE sends some.",
            lines: [
                {name: () => "seen", column: pick("values", "rate"), colour: 1},
                {name: () => "learned", column: pick("values", "learned_rate"), colour: 2, dash: [7, 4]},
                {name: () => "refused", column: pick("values", "refused_rate"), colour: 3, dash: [2, 3]},
            ],
        },
        {
            id: "latency", title: "Latency, receipt to events", value: page.seconds, zero: true, empty: "No samples yet: svmstream feed FILE sends some.",
            lines: [
                {name: () => "p99", column: pick("values", "latency_p99"), colour: 1},
                {name: () => "p50", column: pick("values", "latency_p50"), colour: 2, dash: [7, 4]},
            ],
        },
        {
            id: "memory", title: "Memory and journal", value: page.bytes, zero: true, empty: "No figures yet.",
            lines: [
                {name: () => "memory", column: pick("values", "memory"), colour: 1},
                {name: () => "journal", column: pick("values", "journal_bytes"), colour: 2, dash: [7, 4]},
            ],
        },
    ];

    const colours = () => {
        const style = getComputedStyle(document.documentElement), of = (name) => style.getPropertyValue(name).trim();
        return {lines: [null, of("--line-1"), of("--line-2"), of("--line-3")], axis: of("--rule"), grid: of("--grid"),
            bands: {notice: of("--notice"), warning: of("--warning"), serious: of("--serious")}, text: of("--muted")};
    };
    let palette = null;
    page.palette = () => (palette = palette || colours());

    /* ---- bands of alerts, beneath the lines */

    page.drawBands = (context, area, graph, alerts) => {
        const [first, last] = graph.xAxisRange(), paint = page.palette();
        let free = -Infinity; // where the next word may begin
        context.save();
        context.font = "600 10px system-ui, sans-serif";
        context.textBaseline = "top";
        for (const alert of alerts) {
            const begin = 1000 * alert.opened, end = 1000 * page.alertEnd(alert);
            if (end < first || begin > last)
                continue;
            const left = Math.max(graph.toDomXCoord(begin), area.x), right = Math.min(graph.toDomXCoord(end), area.x + area.w);
            const severity = paint.bands[alert.severity] ? alert.severity : "warning";
            context.fillStyle = context.strokeStyle = paint.bands[severity];
            context.globalAlpha = 0.14;
            context.fillRect(left, area.y, Math.max(right - left, 2), area.h);
            context.globalAlpha = 1;
            context.fillRect(left, area.y, Math.max(right - left, 2), 2);
            context.fillRect(Math.round(left), area.y, 1, area.h);
            const word = alert.kind === "quality" ? "quality" : page.word(severity).toLowerCase(), width = context.measureText(word).width;
            if (left >= free && left + width + 5 < area.x + area.w) {
                context.fillText(word, left + 4, area.y + 5);
                free = left + width + 10;
            }
        }
        context.restore();
    };

    /* ---- one chart */

    const swatch = (line) => {
        const space = "http://www.w3.org/2000/svg", svg = document.createElementNS(space, "svg"), path = document.createElementNS(space, "path");
        svg.setAttribute("class", "swatch line-" + line.colour);
        svg.setAttribute("viewBox", "0 0 22 8");
        svg.setAttribute("aria-hidden", "true");
        path.setAttribute("d", "M0 4h22");
        if (line.dash)
            path.setAttribute("stroke-dasharray", line.dash.join(" "));
        svg.append(path);
        return svg;
    };

    const axisTime = (t, granularity, options) => {
        const at = t / 1000, date = new Date(t), midnight = date.getHours() === 0 && date.getMinutes() === 0 && date.getSeconds() === 0;
        if (midnight || granularity >= Dygraph.DAILY)
            return date.toLocaleDateString("en-GB", {day: "numeric", month: "short"});
        return date.getSeconds() ? page.second(at) : page.clock(at);
    };

    page.axes = (value, colour, spacing = 34) => {
        const common = {axisLabelFontSize: 11, axisLineColor: colour.axis, gridLineColor: colour.grid, axisLineWidth: 1, gridLineWidth: 1};
        return {
            x: {...common, ticker: Dygraph.dateTicker, axisLabelFormatter: axisTime, axisLabelWidth: 66, pixelsPerLabel: 90, drawGrid: false},
            y: {...common, axisLabelWidth: 54, axisLabelFormatter: (x) => value(x), pixelsPerLabel: spacing, valueFormatter: (x) => value(x)},
        };
    };

    Dygraph.PLUGINS = Dygraph.PLUGINS.filter((p) => p !== Dygraph.Plugins.Legend); // it sets styles by attributes, which the policy forbids

    const interaction = () => ({
        mousedown: (event, graph, context) => Dygraph.defaultInteractionModel.mousedown(event, graph, context),
        dblclick: () => page.time.follow(),
        willDestroyContextMyself: true,
    });

    const keys = (event) => {
        const actions = {ArrowLeft: () => page.time.move(-0.25), ArrowRight: () => page.time.move(0.25), "+": () => page.time.zoom(0.5),
            "=": () => page.time.zoom(0.5), "-": () => page.time.zoom(2), Escape: () => page.time.follow(), Home: () => page.time.follow(0)};
        const action = !event.ctrlKey && !event.metaKey && !event.altKey && actions[event.key];
        if (action) {
            event.preventDefault();
            action();
        }
    };

    /* A line with `newest` counts by its newest value alone: the level of an alert begins in the thousands and would flatten all else. */
    const range = (chart, rows) => {
        let low = Infinity, high = -Infinity;
        const ends = chart.lines.map((line, i) => (line.newest ? rows.findLastIndex((row) => row[i + 1] !== null) : -1));
        for (const [j, row] of rows.entries())
            for (let i = 1; i < row.length; i++)
                if (row[i] !== null && (!chart.lines[i - 1].newest || j === ends[i - 1])) {
                    low = Math.min(low, row[i]);
                    high = Math.max(high, row[i]);
                }
        if (low > high)
            return [0, 1];
        if (chart.zero)
            return [0, high > 0 ? 1.15 * high : 1];
        const pad = Math.max(0.12 * (high - low), 0.02 * Math.abs(high), 1e-9);
        return [low - pad, high + pad];
    };

    const widths = new ResizeObserver((entries) => {
        for (const e of entries)
            if (e.target.graph && e.contentRect.width > 0)
                e.target.graph.resize();
    });

    const build = (chart, rows) => {
        const colour = page.palette();
        chart.graph = new Dygraph(chart.plot, rows, {
            labels: ["time", ...chart.lines.map((_, i) => "line " + i)], colors: chart.lines.map((l) => colour.lines[l.colour]),
            series: Object.fromEntries(chart.lines.map((l, i) => ["line " + i, {strokePattern: l.dash || null, strokeWidth: l.colour === 1 ? 1.6 : 1.3}])),
            axes: page.axes((x) => chart.value(x, chart.view), colour), legend: "never", highlightCircleSize: 3, xRangePad: 0, rightGap: 8,
            interactionModel: interaction(), animatedZooms: false, connectSeparatedPoints: false, dateWindow: chart.window,
            valueRange: range(chart, rows), xAxisHeight: 20,
            underlayCallback: (context, area, graph) => chart.bands && page.drawBands(context, area, graph, chart.view.bands.filter(chart.bands)),
            highlightCallback: (event, x) => hover(chart.view, x / 1000), unhighlightCallback: () => hover(chart.view, null),
            zoomCallback: (from, to) => page.time.show(from / 1000, to / 1000),
            drawCallback: (graph) => panned(chart, graph),
            clickCallback: (event, x) => page.alertAt(chart.view, x / 1000, chart.bands),
        });
        chart.plot.graph = chart.graph;
        widths.observe(chart.plot);
    };

    /* A drag with the shift key moves the chart: the others follow when the mouse is let go. */
    const panned = (chart, graph) => {
        const away = () => graph.xAxisRange().some((t, i) => Math.abs(t - chart.window[i]) >= 1);
        if (chart.own || !away())
            return;
        clearTimeout(chart.settle);
        chart.settle = setTimeout(() => away() && page.time.show(...graph.xAxisRange().map((t) => t / 1000)), 150); // it may have been a zoom, or be over
    };

    const makeChart = (view, chosen) => {
        const node = document.getElementById("t-chart").content.cloneNode(true).firstElementChild, chart = {...chosen, view, node, rows: []};
        const id = "chart-" + view.number + "-" + chosen.id;
        chart.plot = node.querySelector(".plot");
        chart.title = node.querySelector("h3");
        chart.title.id = id;
        node.querySelector(".summary").id = id + "-words";
        chart.plot.setAttribute("aria-labelledby", id);
        chart.plot.setAttribute("aria-describedby", id + "-words");
        chart.plot.addEventListener("keydown", keys);
        node.dataset.chart = chosen.id;
        page.set(chart.title, chosen.title);
        page.set(node.querySelector(".empty"), chosen.empty);
        chart.values = chosen.lines.map((line) => {
            const value = page.make("b", {}, "–"), name = page.make("span", {}, line.name(view));
            node.querySelector(".legend").append(page.make("span", {class: "entry"}, swatch(line), name, " ", value));
            return {value, name};
        });
        return chart;
    };

    page.makeCharts = (view, place) => {
        view.charts = CHARTS.map((chosen) => makeChart(view, chosen));
        place.append(...view.charts.map((c) => c.node));
    };

    const readouts = (view) => {
        const held = view.series.held, last = held.t.length - 1;
        const at = view.pointer === null || view.pointer === undefined ? -1 : page.nearest(held, view.pointer);
        for (const chart of view.charts) {
            chart.values.forEach(({value, name}, i) => {
                let row = at >= 0 ? at : last;
                while (at < 0 && row > 0 && last - row < 5 && chart.rows[row] && chart.rows[row][i + 1] === null)
                    row--; // the newest step may have no figure yet
                page.set(value, chart.value(chart.rows[row]?.[i + 1] ?? null, view));
                page.set(name, chart.lines[i].name(view));
            });
            page.set(chart.node.querySelector(".at"), at >= 0 ? page.moment(held.t[at], held.step < 60) : "");
        }
    };

    const hover = (view, t) => {
        if (view.pointer === t)
            return;
        view.pointer = t;
        const row = t === null ? -1 : page.nearest(view.series.held, t);
        for (const chart of view.charts)
            if (chart.graph && !chart.node.querySelector(".plot:hover"))
                row < 0 ? chart.graph.clearSelection() : chart.graph.setSelection(row);
        readouts(view);
    };

    /* What a chart shows, in words. */
    const summarise = (chart, from, to) => {
        const parts = chart.lines.map((line, i) => {
            const values = chart.rows.map((r) => r[i + 1]).filter((x) => x !== null);
            if (!values.length)
                return line.name(chart.view) + ": no values";
            const low = values.reduce((a, b) => Math.min(a, b)), high = values.reduce((a, b) => Math.max(a, b));
            return line.name(chart.view) + ": " + [values.at(-1), low, high].map((x, j) => ["now ", "lowest ", "highest "][j] + chart.value(x, chart.view)).join(", ");
        });
        const inside = chart.bands ? chart.view.bands.filter((a) => chart.bands(a) && a.opened < to && page.alertEnd(a) >= from).length : 0;
        return page.moment(from) + " to " + page.moment(to) + ". " + parts.join("; ") + (chart.bands ? "; alerts in this time: " + inside : "") +
            ". Arrow keys move through the time, plus and minus zoom, Escape follows the stream.";
    };

    /* Draws all charts of a stream from its figures. */
    page.drawCharts = (view) => {
        const held = view.series.held, [from, to] = page.time.window();
        for (const chart of view.charts) {
            const columns = chart.lines.map((line) => line.column(held));
            chart.rows = held.t.map((t, j) => [1000 * t, ...columns.map((c) => c?.[j] ?? null)]);
            if (!chart.rows.length)
                chart.rows.push([1000 * to, ...columns.map(() => null)]); // dygraphs wants a row
            const empty = !chart.rows.some((row) => row.some((x, i) => i > 0 && x !== null));
            chart.window = [1000 * from, 1000 * to];
            chart.node.classList.toggle("is-empty", empty && !chart.graph);
            page.show(chart.node.querySelector(".empty"), empty);
            chart.had = chart.had || !empty;
            page.set(chart.node.querySelector(".empty"), chart.had ? "No figures in this time." : page.known(view.status?.keys) && chart.byKey
                || view.info?.method === "none" && chart.unlearned || chart.empty);
            chart.own = true;
            if (chart.graph)
                chart.graph.updateOptions({file: chart.rows, dateWindow: chart.window, valueRange: range(chart, chart.rows)});
            else if (!empty || (chart.bands && view.bands.some(chart.bands)))
                build(chart, chart.rows);
            chart.own = false;
            if (!chart.summarised || Date.now() - chart.summarised > 5000) {
                page.set(chart.node.querySelector(".summary"), summarise(chart, from, to));
                chart.summarised = Date.now();
            }
        }
        if (view.pointer !== null && view.pointer !== undefined) {
            const row = page.nearest(held, view.pointer);
            for (const chart of view.charts)
                chart.graph?.setSelection(row);
        }
        readouts(view);
    };

    page.closeCharts = (view) => {
        for (const chart of view.charts) {
            clearTimeout(chart.settle);
            widths.unobserve(chart.plot);
            chart.graph?.destroy();
        }
    };

    /* Other colours: after a change of theme, and for print. */
    page.recolour = () => {
        palette = null;
        const colour = page.palette();
        for (const view of page.views.values()) {
            for (const chart of view.charts)
                chart.graph?.updateOptions({colors: chart.lines.map((l) => colour.lines[l.colour]), axes: page.axes((x) => chart.value(x, view), colour)});
            page.recolourAlerts(view);
        }
    };
})();
