#!/usr/bin/env python3
"""Reads metrics as OpenMetrics 1.0 has them, strictly.

  openmetrics.py URL                     says what is wrong, or "N families, M samples"
  openmetrics.py URL NAME [LABEL=VALUE]...   the sum of these samples

  CA=FILE  CERTIFICATE=FILE KEY=FILE     of https: whom to trust, and what to show
"""
import os
import re
import ssl
import sys
import urllib.request

TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
SUFFIXES = {"counter": {"_total"}, "gauge": {""}, "info": {"_info"}, "histogram": {"_bucket", "_count", "_sum"}}
SAMPLE = re.compile(r'^([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\.)*",?)*)\})? (-?[0-9.]+(?:e[+-]?[0-9]+)?)$')
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')


def fetch(url):
    context = None
    if url.startswith("https:"):
        context = ssl.create_default_context(cafile=os.environ["CA"])
        if os.environ.get("CERTIFICATE"):
            context.load_cert_chain(os.environ["CERTIFICATE"], os.environ["KEY"])
    with urllib.request.urlopen(url, timeout=10, context=context) as answer:
        if answer.headers["Content-Type"] != TYPE:
            sys.exit("its type is " + answer.headers["Content-Type"])
        return answer.read().decode("utf-8")


def parse(text):
    families, samples, family, kind = set(), {}, None, None
    lines = text.split("\n")
    if lines[-2:] != ["# EOF", ""]:
        sys.exit("it does not end with # EOF")
    for line in lines[:-2]:
        words = line.split(" ", 3)
        if words[0] == "#" and words[1] == "TYPE":
            family, kind = words[2], words[3]
            if family in families:
                sys.exit("family " + family + " comes twice")
            families.add(family)
        elif words[0] == "#":
            if words[1] not in ("HELP", "UNIT") or words[2] != family or not words[3]:
                sys.exit("not of " + str(family) + ": " + line)
        else:
            sample = SAMPLE.match(line)
            if not sample or not sample[1].startswith(family) or sample[1][len(family):] not in SUFFIXES[kind]:
                sys.exit("not of " + str(family) + ": " + line)
            key = (sample[1], tuple(LABEL.findall(sample[2] or "")))
            if key in samples:
                sys.exit("twice: " + line)
            samples[key] = float(sample[3])
    return families, samples


def main():
    families, samples = parse(fetch(sys.argv[1]))
    if len(sys.argv) == 2:
        print(f"{len(families)} families, {len(samples)} samples")
        return
    wanted = {tuple(word.split("=", 1)) for word in sys.argv[3:]}
    found = [value for (name, labels), value in samples.items() if name == sys.argv[2] and wanted <= set(labels)]
    print(f"{sum(found):.15g}" if found else "none")


main()
