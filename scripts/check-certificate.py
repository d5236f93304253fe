#!/usr/bin/env python3
"""check-certificate.py FOLDER: checks an export in CSV from nothing but its folder: is it complete, as it claims?

Why an export can be complete although its list moved while it was read: one response is one slice of the list in the
order of time, as it was at one moment. A slice that shows a record strictly newer than the oldest one taken so far (the
frontier) and goes on below it shows everything that was in the list in between. So a chain of such slices, from the
newest record to the oldest, has seen every record that was in the list throughout. Of records with the very time of the
frontier, a slice may show only some. They are complete once two sweeps over all their places in a row showed the same
records, as many as there are places: the frontier is closed then.

The connector wrote down each slice that it took, in certificate.jsonl. This program follows that chain and compares it
with the tables. It cannot check its premises:
  created     The service never changes the time by which its list is ordered (`updated`: only to a later one).
  slice       One response is one slice of the list in the requested order, as it was at one moment.
  transcript  The certificate says what the service answered: the service signs nothing.

Prints ACCEPT with what follows, exit 0; or REJECT with the first thing that does not hold, exit 1.
"""
import calendar, csv, hashlib, json, pathlib, re, sys

EVER = float("inf")
CLOCKS_DIFFER = 5_000_000  # Microseconds by which the clocks of a service's servers may differ.
csv.field_size_limit(2**31 - 1)


class Rejected(Exception):
    pass


def need(holds, why):
    if not holds:
        raise Rejected(why)


def instant(text, absent=None):
    """Whole microseconds since 1970."""
    if text is None and absent is not None:
        return absent
    match = re.fullmatch(r"([\d-]{10})[Tt ]([\d:]{8})(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):?(\d\d))", text or "")
    need(match, f"{text!r} is not a time")
    date, time, fraction, sign, hours, minutes = match.groups("0")
    east = (int(hours) * 60 + int(minutes)) * (-1 if sign == "-" else 1)
    seconds = calendar.timegm(tuple(map(int, date.split("-") + time.split(":")))) - east * 60
    return seconds * 1_000_000 + int(fraction.ljust(6, "0")[:6])


def sum_of(ids):
    return hashlib.sha256("\n".join(ids).encode()).hexdigest()


def check_file(folder, file):
    digest, size = hashlib.sha256(), 0
    with open(folder / file["path"], "rb") as data:
        while chunk := data.read(1 << 20):
            digest.update(chunk)
            size += len(chunk)
    need(size == file["bytes"] and digest.hexdigest() == file["sha256"], f"{file['path']} is not as it was published")


def read_tables(folder, manifest, key):
    """The ids and times of the records, in order. Rows, keys and parents are those of the manifest."""
    keys, records = {}, []
    for table in manifest["tables"]:
        name, own = table["name"], set()
        columns = [column["name"] for column in table["columns"]]
        places = [columns.index(column) for column in table["key"]]
        time = columns.index(key) if key in columns and f"{name}.{key}" not in manifest["hashed"] else None
        count = 0
        for file in table["files"]:
            with open(folder / file["path"], encoding="utf-8-sig", newline="") as text:
                rows = csv.reader(text, delimiter=manifest["dialect"]["delimiter"])
                need(next(rows) == columns, f"{file['path']} has other columns than the manifest")
                for row in rows:
                    count += 1
                    need(len(row) == len(columns), f"{file['path']}: row {count} has {len(row)} cells")
                    own.add(tuple(row[place] for place in places))
                    if "parent" not in table:
                        records.append((row[places[0]], None if time is None else instant(row[time])))
        need(count == table["rows"] == len(own), f"{name}: {len(own)} keys in {count} rows, not {table['rows']}")
        if "parent" in table:
            need(all(row[:-1] in keys[table["parent"]] for row in own), f"{name} has a row without its parent")
        keys[name] = own
    return records


class Chain:
    """What is known after each line: where the frontier is, and whether all records of its time are known."""

    def __init__(self, head, records, whole):
        self.key, self.records, self.whole = head["key"], records, whole
        self.place, self.dates, self.empty, self.left = 0, [], False, False
        self.frontier, self.closed, self.ended = EVER, True, True
        self.down, self.through = EVER, EVER  # The lower bound of the range; the next one begins there.
        self.statuses, self.looked, self.wanted = [], None, []

    def range(self, line):
        """A chain begins: over the next range, or over the records with the next status."""
        need(self.ended, "the range before has not ended")
        upper, down = instant(line["range"]["upTo"], EVER), instant(line["range"]["downTo"], -EVER)
        if "status" in line:
            need(self.wanted and self.wanted.pop(0) == line["status"] and self.down == self.whole, "a status is missing")
            need((upper, down) == (EVER, -EVER), "a status is not read as a whole")
        else:
            need(upper == self.down and self.looked is None, "the range does not begin where the one before it ends")
            self.statuses, self.down = line.get("statuses", []), down
        if line["date"]:
            self.dates.append(instant(line["date"]))
            self.through = min(self.through, self.dates[-1] - line["lag"] * 1000)
        self.lag, self.frontier, self.closed = line["lag"], upper, upper == EVER
        self.ended, self.empty, self.left = False, False, False

    def take(self, line, low, high):
        """The next records of the table are those that the line took, newest first, between these times."""
        taken = self.records[self.place : self.place + line["taken"]]
        self.place += line["taken"]
        self.left |= "left" in line
        need(sum_of(id for id, _ in taken) == line["ids"] and len(taken) == line["taken"], "the table has other records")
        times = [time for _, time in taken if time is not None]
        need(times == sorted(times, reverse=True), "the records are not in the order of time")
        need(all(max(low, self.down + 1) <= time <= high for time in times), "a record is not of the time of the window")
        return times

    def window(self, line):
        need(not self.ended, "a window after the end of its range")
        top = line["page"] == 1 and "descending" in line
        bottom = line["page"] == 1 and "descending" not in line
        size = line.get("records", line["size"])
        need(size <= line["size"] if "last" in line else size == line["size"], "a page that another follows is not full")
        if "date" in line and self.dates:
            date = instant(line["date"])
            need(date >= self.dates[0] - CLOCKS_DIFFER, "the response is older than the read")
            self.through = min(self.through, date - self.lag * 1000)
        if size == 0:
            need(line["taken"] == 0 and (top or bottom), "records of an empty page")
            self.ended = bottom and self.empty  # Nothing lies at either end of the list.
            self.empty = top
            return
        newest, oldest = instant(line["newest"]), instant(line["oldest"])
        need(newest >= oldest, "the newest record is older than the oldest")
        above = top or newest > self.frontier or (self.closed and newest == self.frontier)
        need(above, "the window does not reach above the frontier: records may be missing there")
        need(bottom or oldest < self.frontier, "the window does not reach below the frontier")
        times = self.take(line, oldest, min(newest, self.frontier))
        need(not (self.closed and self.frontier in times), "a record of a time that was complete")
        if oldest > self.down and oldest < self.frontier:
            need("left" in line or line["taken"] and oldest in (times or [oldest]), "its oldest record was not taken")
            self.frontier, self.closed = oldest, False
        self.ended = bottom or oldest <= self.down

    def tied(self, line):
        need(instant(line["tied"]) == self.frontier and not self.ended, "a sweep over another time than the frontier's")
        self.take(line, self.frontier, self.frontier)

    def swept(self, line):
        need(instant(line["swept"]) == self.frontier, "a sweep over another time than the frontier's")
        need(len(set(line["places"])) == 1, "the number of places changed between the sweeps")
        need(line["shown"][0] == line["shown"][1], "the two sweeps showed different records")
        shown, place = set(), self.place
        while place > 0 and self.records[place - 1][1] == self.frontier:
            place -= 1
            shown.add(self.records[place][0])
        if shown and not self.left:  # Where a record may come twice, it may be anywhere in the table.
            named = sorted(shown - set(line["gone"]), key=lambda id: id.encode("utf-16-be"))
            need(sum_of(named) == line["shown"][0], "the table has other records than the sweeps showed")
            need(len(named) + line["nameless"] == line["places"][0], "the sweeps did not show a record for each place")
        self.closed = True

    def looks(self, line):
        need(self.ended and self.looked is None and line["looked"] == self.statuses, "other statuses were sampled before")
        self.looked, self.wanted = line["hidden"], list(line["looked"]) if line["hidden"] else []


def check(folder):
    folder = pathlib.Path(folder)
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    extra = [manifest["rejected"], manifest.get("missing", {}), manifest.get("certificate", {})]
    for file in (file for part in manifest["tables"] + extra for file in part.get("files", [])):
        check_file(folder, file)
    key, ids = manifest["ordering"], read_tables(folder, manifest, manifest["ordering"])
    if manifest["mode"] == "byId":
        return f"{len(ids)} documents by id; that says nothing about others"
    text = (folder / manifest["certificate"]["files"][0]["path"]).read_text("utf-8")
    head, *lines, end = map(json.loads, text.split("\n")[:-1])
    same = {"resource", "workspace", "testMode", "mode", "filters"}
    need(all(head[name] == manifest[name] for name in same) and head["key"] == key, "the certificate is of another read")
    need(all(end[name] == manifest[name] for name in ("completeThrough", "records", "windows")), "the end is of another read")
    need(end["end"] == manifest["verdict"] and end["records"] == len(ids), f"not the {len(ids)} records of the table")
    if end["end"] != "proven":
        need(end["completeThrough"] is None, "complete through a time, but not proven")
        return f"{len(ids)} records, not proven: {'; '.join(end['reasons'])}"
    whole = -EVER if key == "created" else -(-instant(head["changedSince"]) // 1) - 1
    chain = Chain(head, ids, whole)
    follow = {"range": chain.range, "page": chain.window, "tied": chain.tied, "swept": chain.swept, "looked": chain.looks}
    for number, line in enumerate(lines, 2):
        try:
            need("broken" not in line, "the chain broke")
            next(step for name, step in follow.items() if name in line)(line)
        except Rejected as why:
            raise Rejected(f"line {number} of the certificate: {why}")
    need(chain.ended and chain.down == whole, "the chain does not reach the end of the list")
    need(chain.place == len(ids), "the table has records that no window took")
    need(not chain.statuses or chain.looked is not None and not chain.wanted, "statuses were not sampled after the read")
    need(instant(end["completeThrough"]) <= chain.through, "complete through a later time than the responses show")
    return f"{len(ids)} records, complete through {end['completeThrough']}"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        print("ACCEPT", check(sys.argv[1]))
    except (Rejected, LookupError, TypeError, StopIteration, OSError, ValueError) as why:
        print("REJECT", why)
        sys.exit(1)
