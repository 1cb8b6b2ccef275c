# SPDX-License-Identifier: Apache-2.0
"""Committed results: one JSON object with its command, device, rows and summary.

A row that failed is kept, with `"verified": false` and a `failure`; a figure that
was not measured is absent. Times are medians in milliseconds, ratios are baseline
over ours.
"""

import datetime
import json
import math
import os
import pathlib


def geometric_mean(values):
    """None of nothing."""
    values = [v for v in values if v and v > 0]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def median(values):
    """None of nothing."""
    values = sorted(v for v in values if v is not None)
    if not values:
        return None
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2


def rounded(value, digits=4):
    """A float with `digits` significant digits; anything else as it is."""
    if not isinstance(value, float) or value == 0 or not math.isfinite(value):
        return value
    return round(value, digits - 1 - math.floor(math.log10(abs(value))))


def seconds_between(begin, end):
    """Of two times as the API prints them."""
    begin, end = (datetime.datetime.fromisoformat(_trimmed(time)) for time in (begin, end))
    return (end - begin).total_seconds()


def _trimmed(time):
    """With at most microseconds, which is what Python reads."""
    whole, _, fraction = time.removesuffix('Z').partition('.')
    return f'{whole}.{fraction[:6]:0<6}+00:00'


def without_absent(row):
    return {key: rounded(value) for key, value in row.items() if value is not None}


class ResultFile:
    """A results file that is whole on disk after every row, so that a run that is
    killed keeps what it has."""

    def __init__(self, path, head, summarize, resumes):
        """`head` holds command, commit, device and versions; `summarize` makes the
        summary of a list of rows. `resumes` keeps the rows that are there; those that
        another commit made say so."""
        self._path = pathlib.Path(path)
        self._head = dict(head)
        self._summarize = summarize
        self.rows = []
        if resumes and self._path.exists():
            old = json.loads(self._path.read_text())
            self.rows = old['rows']
            for row in self.rows:
                if old.get('commit') != head.get('commit'):
                    row.setdefault('commit', old.get('commit'))

    def find(self, **key):
        """The row with these values, or None."""
        for row in self.rows:
            if all(row.get(name) == value for name, value in key.items()):
                return row
        return None

    def put(self, row, key):
        """Adds a row, or replaces the one that is equal in the fields of `key`."""
        row = without_absent(row)
        old = self.find(**{name: row.get(name) for name in key})
        if old is None:
            self.rows.append(row)
        else:
            self.rows[self.rows.index(old)] = row
        self.write()

    def write(self):
        document = dict(self._head)
        document.setdefault('date', datetime.datetime.now(datetime.timezone.utc).date().isoformat())
        document['rows'] = self.rows
        document['summary'] = self._summarize(self.rows)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self._path.with_suffix('.json.part')
        temporary.write_text(to_text(document))
        os.replace(temporary, self._path)


def to_text(document):
    """JSON with one row per line: short diffs, and readable without a tool."""
    head = {key: value for key, value in document.items() if key not in ('rows', 'summary')}
    lines = [f'  {json.dumps(key)}: {json.dumps(value)},' for key, value in head.items()]
    rows = ',\n'.join('    ' + json.dumps(row) for row in document['rows'])
    lines.append(f'  "rows": [\n{rows}\n  ],' if rows else '  "rows": [],')
    summary = json.dumps(document['summary'], indent=2).replace('\n', '\n  ')
    lines.append(f'  "summary": {summary}')
    return '{\n' + '\n'.join(lines) + '\n}\n'
