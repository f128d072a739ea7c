#!/usr/bin/env python3
"""dashboard.py PROMETHEUS DASHBOARD.json SECONDS [PICTURE.svg]: asks every query of a Grafana dashboard for the last
SECONDS, prints a line for each - "ok N series: TITLE" or "empty: TITLE: QUERY" - and draws what came as Grafana
lays it out."""
import json
import math
import re
import sys
import time
import urllib.parse
import urllib.request
from xml.sax.saxutils import escape

COLUMN, ROW, GAP = 60, 34, 8
COLORS = ["#73bf69", "#f2cc0c", "#8ab8ff", "#ff9830", "#f2495c", "#b877d9", "#5794f2", "#fade2a", "#96d98d", "#ffb357"]
NAMED = {"green": "#73bf69", "yellow": "#f2cc0c", "red": "#f2495c", "text": "#9fa7b3"}
UNITS = {"Bps": ("B/s", 1024), "ops": ("/s", 1000), "reqps": ("/s", 1000), "short": ("", 1000)}


def plain(query):
    """With all that the variables of the dashboard can be: its own default."""
    return re.sub(r"\$(node|dataset|volume|layer)\b", ".*", query.replace("$__rate_interval", "15s"))


def color(panel, name, value):
    """What Grafana gives a number by its thresholds."""
    thresholds = panel["fieldConfig"]["defaults"].get("thresholds", {"steps": []})
    for override in panel["fieldConfig"]["overrides"]:
        if override["matcher"]["options"] == name:
            thresholds = next(p["value"] for p in override["properties"] if p["id"] == "thresholds")
    reached = [step["color"] for step in thresholds["steps"] if step["value"] is None or value >= step["value"]]
    return NAMED.get(reached[-1] if reached else "green", "#73bf69")


def ask(server, query, seconds):
    now = time.time()
    form = urllib.parse.urlencode({"query": query, "start": now - seconds, "end": now, "step": max(seconds / 120, 1)})
    with urllib.request.urlopen(server + "/api/v1/query_range", form.encode(), timeout=30) as answer:
        result = json.load(answer)["data"]["result"]
    series = []
    for one in result:
        points = [(t, float(v)) for t, v in one["values"] if not math.isnan(float(v)) and not math.isinf(float(v))]
        if points:
            series.append((one["metric"], points))
    return series


def legend(text, labels):
    for name, value in labels.items():
        text = text.replace("{{" + name + "}}", value)
    return text


def number(value, unit):
    if unit == "percentunit":
        return f"{100 * value:.0f}%"
    if unit == "s":
        return f"{value * 1000:.3g} ms" if value < 1 else f"{value:.3g} s"
    text, base = UNITS[unit]
    for prefix in ["", "K", "M", "G", "T"]:
        if abs(value) < base or prefix == "T":
            return f"{value:.3g} {prefix}{text}".strip()
        value /= base


def stat(panel, lines, width, height):
    values = [(name, points[-1][1]) for name, points in lines]
    texts = [number(value, panel["fieldConfig"]["defaults"]["unit"]) for _, value in values]
    spans = " / ".join(f'<tspan fill="{color(panel, *one)}">{escape(text)}</tspan>' for one, text in zip(values, texts))
    size = min(34, int(1.5 * width / max(len(" / ".join(texts)), 1)))
    return [f'<text x="{width / 2:.0f}" y="{height / 2 + 22:.0f}" font-size="{size}" text-anchor="middle" '
            f'fill="#9fa7b3">{spans}</text>']


def chart(panel, lines, width, height, since, until):
    unit = panel["fieldConfig"]["defaults"]["unit"]
    left, top, bottom = 64, 30, height - 42
    least = {"percentunit": 0.01, "s": 0.001}.get(unit, 1)
    most = max([v for _, points in lines for _, v in points] + [least])
    out = []
    for part in (0, 0.5, 1):
        y = bottom - part * (bottom - top)
        out.append(f'<line x1="{left}" x2="{width - 10}" y1="{y:.1f}" y2="{y:.1f}" stroke="#2c3235"/>')
        out.append(f'<text x="{left - 6}" y="{y + 4:.1f}" font-size="10" text-anchor="end" fill="#9fa7b3">'
                   f'{escape(number(part * most, unit))}</text>')
    for i, (_, points) in enumerate(lines):
        path = " ".join(f"{left + (t - since) / (until - since) * (width - 10 - left):.1f},"
                        f"{bottom - v / most * (bottom - top):.1f}" for t, v in points)
        out.append(f'<polyline points="{path}" fill="none" stroke="{COLORS[i % len(COLORS)]}" stroke-width="1.5"/>')
    x = left
    for i, (name, _) in enumerate(lines[:4]):
        name = name if len(name) < 34 else "…" + name[-32:]
        if x + 7 * len(name) > width:
            break
        out.append(f'<text x="{x}" y="{height - 12}" font-size="10" fill="{COLORS[i % len(COLORS)]}">{escape(name)}</text>')
        x += 7 * len(name) + 12
    return out


def main():
    server, path, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    dashboard, drawn, bottom = json.load(open(path)), [], 0
    until = time.time()
    for panel in dashboard["panels"]:
        lines = []
        for target in panel["targets"]:
            series = ask(server, plain(target["expr"]), seconds)
            print(f"ok {len(series)} series: {panel['title']}" if series else f"empty: {panel['title']}: {target['expr']}")
            lines += [(legend(target["legendFormat"], labels), points) for labels, points in series]
        grid = panel["gridPos"]
        width, height = grid["w"] * COLUMN - GAP, grid["h"] * ROW - GAP
        bottom = max(bottom, (grid["y"] + grid["h"]) * ROW)
        drawn.append(f'<g transform="translate({grid["x"] * COLUMN + GAP},{grid["y"] * ROW + GAP})">')
        drawn.append(f'<rect width="{width}" height="{height}" rx="3" fill="#181b1f" stroke="#2c3235"/>')
        drawn.append(f'<text x="10" y="19" font-size="12" fill="#d8d9da">{escape(panel["title"])}</text>')
        if lines:
            drawn += stat(panel, lines, width, height) if panel["type"] == "stat" else chart(
                panel, lines, width, height, until - seconds, until)
        drawn.append("</g>")
    if len(sys.argv) > 4:
        with open(sys.argv[4], "w") as picture:
            picture.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{24 * COLUMN + GAP}" height="{bottom + GAP}" '
                          'font-family="Inter, Helvetica, sans-serif"><rect width="100%" height="100%" fill="#111217"/>\n')
            picture.write("\n".join(drawn) + "\n</svg>\n")


main()
