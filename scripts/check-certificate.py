#!/usr/bin/env python3
"""check-certificate.py FOLDER...: checks exports in CSV from nothing but their folders: are they complete, as they claim?

Why an export can be complete although its list moved while it was read: one response is one slice of the list in the
order of time, as it was at one moment. The frontier is the time of the oldest record taken so far. A slice that begins above
it and ends below it leaves no hole between them, because it shows everything that was in the list there. So a chain of such
slices, from the newest record to the oldest, has seen every record that was in the list throughout. Each record that a slice
held is accounted for, as one of these, which its line counts:
  newer   than the frontier: it was met before, or came since.
  known   It is at the time of the frontier and was taken before.
  twice   This response showed it before.
  beyond  It is older than the range.
  taken   It is new, so it is the next row of the table.
  left    It is new and has no row, as those in rejected.jsonl.
Of records with the very time of the frontier, a slice may show only some. They are read place by place, twice in succession:
if both sweeps showed the same records, as many as there are places, all of them are known, and the frontier is closed. (While
the list moves, both may pass the same record at a border of two pages, and an old count may hide the last of the newest ones.
The read excludes that: it sees each border of a sweep inside a page of another, and the start of the list. The certificate
does not show it.)
A long list may be read in ranges of time, one after the other in the certificate: a chain each, and the next begins where
the one before ends. A list may hide the records with some status unless they are asked for. So the newest and oldest of
each status are looked at before and after; if the list lacks one of them, it is read again status by status.

The connector wrote each slice that it took into certificate.jsonl. This program follows that chain and compares it with
the tables. It cannot check its premises:
  created     Every record has the time by which its list is ordered, and the service never changes it (`updated`: only to a
              later one).
  slice       One response is one slice of the list in the requested order, as it was at one moment.
  lag         A record becomes visible within the lag after its time.
  date        The Date of a response is not later than what it shows: no cache rewrites it.
  status      A list hides records by their status alone, and only by one of those that were looked at. A record that it
              hides keeps its status while the statuses are read. A list that shows no record heeds the filter.
  count       A list that shows no record, or records of one time alone, counts all of them.
  transcript  The certificate says what the service answered: the service signs nothing.
Of the tables, it compares all keys and the times of the records with the certificate, and what each decimal column adds up
to with the manifest. Other values it takes from the files, and from the manifest how many values are unreadable.
Its answers, and what it exits with:
  ACCEPT       0  The export is complete, as it claims. (Of documents by id: they are those that were read.)
  REJECT       1  Something does not hold: the first thing of it.
  NOT CHECKED  2  It cannot check Parquet and CSV for Excel, nor what is too large for its memory.
  UNPROVEN     3  The export says itself that it is not proven complete, and why. Its files and sums are as it says.
Of several folders, the exit is that of the worst: REJECT, then UNPROVEN, then NOT CHECKED."""
import calendar, csv, decimal, hashlib, itertools, json, pathlib, re, sys

EVER = float("inf")
HEAD = "certificate resource workspace testMode mode filters key changedSince"  # What its first line has,
END = "end reasons completeThrough records windows"  # and its last. What the lines between them may have:
LINES = {
    "range": "range date lag local statuses status",
    "page": "page size records descending date newest oldest count last newer known twice beyond taken left keys",
    "tied": "tied taken left keys",
    "swept": "swept places shown nameless gone",
    "looked": "looked hidden",
}
COUNTS = "page size records count newer known twice beyond taken left lag".split()
EXITS = {"REJECT": 1, "UNPROVEN": 3, "NOT CHECKED": 2, "ACCEPT": 0}  # The worst first.
TIME = re.compile(r"(\d{4})-([01]\d)-([0-3]\d)[Tt ]([0-2]\d):([0-5]\d):([0-6]\d)(?:\.(\d+))?(?:[Zz]|([+-])([01]\d):?([0-5]\d))", re.ASCII)
CLOCKS_DIFFER = 5_000_000  # Microseconds; the servers of one service may have clocks that differ by so much.
csv.field_size_limit(2**31 - 1)
decimal.setcontext(decimal.Context(prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN))  # Exact sums.

def need(holds, why):
    if not holds:
        raise ValueError(why)

def instant(text):
    """Whole microseconds since 1970."""
    match = TIME.fullmatch(text or "")
    need(match, f"{text!r} is not a time")
    *parts, fraction, sign, hours, minutes = match.groups("0")
    east = (int(hours) * 60 + int(minutes)) * (-1 if sign == "-" else 1)
    seconds = calendar.timegm(tuple(map(int, parts))) - east * 60
    return seconds * 1_000_000 + int(fraction.ljust(6, "0")[:6])

def sum_of(lines):
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()

def escape(id):
    """An id of any text, so that nobody can take a part of it for positions, or for another record."""
    return re.sub(r"([\\;\n])", r"\\\1", id)

def check_file(folder, file):
    digest, size = hashlib.sha256(), 0
    with open(folder / file["path"], "rb") as data:
        while chunk := data.read(1 << 20):
            digest.update(chunk)
            size += len(chunk)
    need(size == file["bytes"] and digest.hexdigest() == file["sha256"], f"{file['path']} is not as it was published")

def read_tables(folder, manifest, key):
    """The ids and times of the records, in order, and by id all keys. Rows, keys, parents and totals are as the manifest says."""
    keys, records, children, totals = {}, [], [], Totals()
    for table in manifest["tables"]:
        name, own, count, columns = table["name"], set(), 0, [column["name"] for column in table["columns"]]
        # A hashed column has no times and no currencies.
        plain = [None if f"{name}.{column}" in manifest["hashed"] else column for column in columns]
        places = [columns.index(column) for column in table["key"]]
        children += [{}] if "parent" in table else []
        time, created, currency = (plain.index(one) if one in plain else None for one in (key, "created", "currency"))
        decimals = totals.begin(table)
        for file in table["files"]:
            with open(folder / file["path"], encoding="utf-8", newline="") as text:
                rows = csv.reader(text)
                need(next(rows, None) == columns, f"{file['path']} has other columns than the manifest")
                for count, row in enumerate(rows, count + 1):
                    need(len(row) == len(columns), f"{file['path']}: row {count} has {len(row)} cells")
                    own.add(tuple(row[place] for place in places))
                    if "parent" in table:
                        need(all(re.fullmatch("[0-9]+", row[place]) for place in places[1:]), f"{name} has a row without its position")
                        children[-1].setdefault(row[places[0]], []).append(",".join(row[place] for place in places[1:]))
                    else:
                        # A record without a time lies in no window: EVER is later than all of them.
                        records.append((row[places[0]], None if time is None else instant(row[time]) if row[time] else EVER))
                        totals.currencies[row[places[0]]] = None if currency is None else row[currency]
                        if created is not None and row[created]:
                            totals.times.append(instant(row[created]))
                            totals.months[row[created][:7]] = totals.months.get(row[created][:7], 0) + 1
                    for place, column in decimals:
                        totals.add(column, row[place], totals.currencies.get(row[places[0]]))
        need(count == table["rows"], f"{name} has {count} rows, not {table['rows']}")
        need(len(own) == count or manifest["verdict"] == "unproven", f"{name} has {len(own)} keys in {count} rows")
        if "parent" in table:
            need(all(row[:-1] in keys[table["parent"]] for row in own), f"{name} has a row without its parent")
        keys[name] = own
    totals.check(manifest, len(totals.currencies) == len(records))
    return records, {id: "".join([escape(id), *(";" + " ".join(of.get(id, [])) for of in children)]) for id, _ in records}

class Totals:
    """What each decimal column adds up to, by the currency of the records if they say it."""

    def __init__(self):
        self.columns, self.currencies, self.times, self.months = {}, {}, [], {}

    def begin(self, table):
        """The places of its decimal columns, and their totals."""
        decimals = [(place, column) for place, column in enumerate(table["columns"]) if column["kind"] == "decimal"]
        for _, column in decimals:
            self.columns[f"{table['name']}.{column['name']}"] = column | {"sums": {}, "empty": 0}
        return [(place, self.columns[f"{table['name']}.{column['name']}"]) for place, column in decimals]

    def add(self, column, cell, currency):
        if cell == "":
            column["empty"] += 1
        else:
            need(re.fullmatch(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,4})?", cell), f"{cell!r} is not a number")
            group = currency if currency is None or re.fullmatch("([A-Za-z]{3})?", currency) else "other"
            column["sums"][group] = column["sums"].get(group, decimal.Decimal(0)) + decimal.Decimal(cell)

    def check(self, manifest, unique):
        """unique: no id comes twice, as it may if unproven. Then nothing tells whose currency a row of the tables below has."""
        claims = manifest["totals"]["columns"]
        need(claims.keys() == self.columns.keys(), "the totals are of other columns")
        for name, column in self.columns.items():
            claim, sums = claims[name], column["sums"]
            # Values that are no numbers: the column is empty there.
            unreadable = manifest["drift"].get(column["source"], {"count": 0})["count"]
            total = f"{sum(sums.values(), decimal.Decimal(0)):f}"
            need(claim["sum"] == total, f"{name} adds up to {total}, not {claim['sum']}")
            counts = (column["empty"] - unreadable, unreadable)
            need((claim["empty"], claim["unreadable"]) == counts, f"{name} has {counts[0]} empty and {unreadable} unreadable values")
            by_currency = {group: f"{total:f}" for group, total in sums.items()}
            claimed = claim.get("byCurrency", {None: total} if sums else {})  # None: the table shows no currencies.
            need(claimed == by_currency or not unique, f"{name} adds up by currency to {by_currency}")
        times = manifest["totals"].get("created")
        claimed = [instant(times["oldest"]), instant(times["newest"])] if times else []
        need(claimed == ([min(self.times), max(self.times)] if self.times else []), "the oldest or newest record is another")
        months = self.months if 0 < len(self.months) <= 1200 else None  # The manifest has no more than a century's.
        need((times or {}).get("months") == months, "the records were created in other months")

class Chain:
    """What is known after each line: where the frontier is, and whether all records of its time are known."""

    def __init__(self, records, keys, rejected):
        # How many records were taken until now, and before the present range.
        self.keys, self.records, self.rejected, self.place, self.before, self.windows = keys, records, rejected, 0, 0, 0
        self.dated = all(time is not None for _, time in records)  # Otherwise, nothing tells which a sweep showed.
        self.through, self.down, self.ended = EVER, EVER, True
        # Whether the top of the list was empty at the last look, and its bottom, too; how many records of the range have no row here.
        self.top_empty, self.all_empty, self.left = False, False, 0
        # The statuses to look at, what that found, and those that have yet to be read.
        self.statuses, self.found, self.wanted = [], None, []

    def range(self, line):
        """A chain begins: over the next range, or over the records with the next status."""
        upper, down = line["range"]["upTo"], line["range"]["downTo"]
        upper, down = instant(upper) if upper else EVER, instant(down) if down else -EVER
        need(self.ended, "the range before has not ended")
        if "status" in line:
            need([line["status"]] == self.wanted[:1] and (upper, down) == (EVER, -EVER), "another status is due")
            self.wanted.pop(0)
        else:
            need(upper == self.down, "the range does not begin where the one before it ends")
            need(not self.found, "the statuses were sampled again before the range was read")
            need(self.down == EVER or line.get("statuses", []) == self.statuses, "other statuses than in the range before")
            self.down, self.statuses = down, line.get("statuses", [])
        began, self.lag = instant(line["date"]), line["lag"] * 1000  # From milliseconds.
        self.through = min(self.through, began - self.lag)
        self.began = None if "local" in line else began  # Dates of the service are compared with its own clock only.
        self.before, self.lower, self.frontier, self.closed = self.place, down, upper, upper == EVER
        self.ended = self.top_empty = self.all_empty = False
        self.left = 0

    def take(self, line, low, high):
        """The next records of the table are those that the line took, newest first, between these times."""
        need(line.get("left", 0) <= self.place + self.rejected, "it left records that were not met before")
        taken = self.records[self.place : self.place + line["taken"]]
        self.place += line["taken"]
        self.left += line.get("left", 0)
        same = len(taken) == line["taken"] and sum_of(self.keys[id] for id, _ in taken) == line["keys"]
        need(same, "the tables have other rows")
        times = [time for _, time in taken if time is not None]
        need(times == sorted(times, reverse=True), "the records are not in the order of time")
        need(all(low <= time <= high and time > self.lower for time in times), "a record lies outside of its window")
        return times

    def first_at_frontier(self):
        """Of the records that the range took, the place of the first at the frontier's time, or of all if they show no times."""
        first = self.place if self.dated else self.before
        while first > self.before and self.records[first - 1][1] == self.frontier:
            first -= 1
        return first

    def page(self, line):
        held, newest_first = line.get("records", line["size"]), "descending" in line
        # Page 1 shows the top of the list, or its bottom if the list was asked for oldest first.
        top, bottom = line["page"] == 1 and newest_first, line["page"] == 1 and not newest_first
        # A list that looked empty at both ends may be read on, and then its chain is not at its end any more.
        need(not self.ended or self.all_empty, "a window after the end of its range")
        need(held == line["size"] or (held < line["size"] and "last" in line), "a page that another follows is not full")
        counted = held == line["size"] or line.get("count", 0) <= (line["page"] - 1) * line["size"] + held
        need(counted, "the last page holds fewer records than the service counted")
        if "date" in line and self.began:
            need(instant(line["date"]) >= self.began - CLOCKS_DIFFER, "the response is older than the read")
            self.through = min(self.through, instant(line["date"]) - self.lag)
        # Each record of the response was newer than the frontier, known at it, shown twice, beyond the range, or new: taken, or left.
        newer, known, twice, beyond, left = (line.get(name, 0) for name in ("newer", "known", "twice", "beyond", "left"))
        need(newer + known + twice + beyond + line["taken"] + left == held, "it took more or fewer records than the response held")
        if held == 0:
            self.ended = self.all_empty = bottom and self.top_empty
            self.top_empty = top  # Where both ends of the list are empty, one after the other, so is the list.
            return
        self.top_empty = self.all_empty = False
        self.windows += 1
        newest, oldest = instant(line["newest"]), instant(line["oldest"])
        need(known <= self.place - self.first_at_frontier() + self.left, "it knew more records of the frontier's time than were taken")
        need((newer > 0) == (newest > self.frontier), "the records newer than the frontier were miscounted")
        need((beyond > 0) == (oldest <= self.lower), "the records beyond the range were miscounted")
        above = top or newest > self.frontier or (self.closed and newest == self.frontier)
        need(above, "the window does not reach above the frontier: records may be missing there")
        need(bottom or oldest < self.frontier, "the window does not reach below the frontier")
        times = self.take(line, oldest, min(newest, self.frontier))
        need(newer or known or left or not times or times[0] == newest, "its newest record was not taken")
        if self.lower < oldest < self.frontier:
            need(left or (line["taken"] and oldest in (times or [oldest])), "its oldest record was not taken")
            self.frontier, self.closed = oldest, False
        self.ended = bottom or oldest <= self.lower

    def tied(self, line):
        """A sweep met more records of the frontier's time."""
        is_open = self.all_empty or not self.ended
        need(instant(line["tied"]) == self.frontier and is_open, "a sweep of another time than the frontier's")
        self.ended = self.top_empty = self.all_empty = False
        self.take(line, self.frontier, self.frontier)

    def swept(self, line):
        """Two sweeps agreed: the places of the frontier's time before, between and after, the sum of the ids of each."""
        need(instant(line["swept"]) == self.frontier, "a sweep of another time than the frontier's")
        before, between, after = line["places"]
        need(before == between == after, "the number of places changed between the sweeps")
        need(line["shown"][0] == line["shown"][1], "the two sweeps showed different records")
        need(before <= self.place - self.first_at_frontier() + self.left, "the sweeps showed more records than were taken")
        if self.dated and not self.left:  # One that was left has no row here.
            # An earlier sweep had taken those that are gone: they have left the list.
            shown = {id for id, _ in self.records[self.first_at_frontier() : self.place]} - set(line["gone"])
            in_order = sorted(shown, key=lambda id: id.encode("utf-16-be"))  # As JavaScript sorts.
            need(sum_of(in_order) == line["shown"][0], "the table has other records than the sweeps showed")
            need(len(shown) == before, "the sweeps did not show a record for each place")
        self.closed = True

    def looked(self, line):
        """Each status was looked at again, and the list hides records of some or not."""
        need(self.ended and line["looked"] == self.statuses, "other statuses were sampled before the read")
        need(not self.found, "the statuses were sampled twice after the read")
        self.found, self.wanted = ("hidden", list(self.statuses)) if line["hidden"] else ("clear", [])
        self.all_empty = False  # A list without records is not read on after this.

def check(folder):
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    parts = manifest["tables"] + [manifest.get(name, {}) for name in ("rejected", "missing", "certificate")]
    for file in (file for part in parts for file in part.get("files", [])):
        check_file(folder, file)
    if manifest["destination"] != "csv" or manifest["dialect"]["formulaGuard"]:
        raise NotImplementedError("this program checks plain CSV only; npx connector verify follows other certificates")
    records, keys = read_tables(folder, manifest, manifest["ordering"])
    rejected = manifest["rejected"]
    kept = sum((folder / file["path"]).read_bytes().count(b"\n") for file in rejected["files"])
    need(kept == rejected["rows"], f"rejected.jsonl has {kept} records, not {rejected['rows']}")
    unkept = manifest["records"] - len(records)  # Read, but in rejected.jsonl, as those without an id are.
    need(0 <= unkept <= kept, f"{len(records)} records, not {manifest['records']}")
    if manifest["mode"] == "byId":
        need(manifest["resource"] in ("creditnotes", "cancellations"), "a list is not read by id")
        answer = "ACCEPT" if manifest["verdict"] == "proven" else "UNPROVEN"
        return answer, f"{len(records)} documents by id, which says nothing about others"
    (file,) = manifest["certificate"]["files"]
    text = (folder / file["path"]).read_text("utf-8")
    head, *lines, end = map(json.loads, text.rstrip("\n").split("\n"))
    named = {"key": "ordering", "end": "verdict", "certificate": "version"}
    for line, names in ((head, HEAD), (end, END)):
        need(names.split() == [name for name in names.split() if name in line], f"the certificate lacks one of {names}")
        for name, value in line.items():
            need(manifest.get(named.get(name, name)) == value, f"{name} is not that of the manifest")
    apart = f" and {kept} in rejected.jsonl" if kept else ""
    what = [f"{len(records)} records of {head['resource']}{apart}", *(f"{name}={value}" for name, value in head["filters"].items())]
    what = ", ".join(what + ([f"changed since {head['changedSince']}"] if head["changedSince"] else []))
    if end["end"] != "proven":
        need(end["completeThrough"] is None, "complete through a time, but not proven")
        return "UNPROVEN", f"{what}: {'; '.join(end['reasons'])}"
    need(not end["reasons"], "proven, although there are reasons why it is not")
    need(manifest["mode"] in ("full", "incremental") and head["key"] in ("created", "updated"), "a read of another kind")
    need([len(table["key"]) for table in manifest["tables"] if "parent" not in table] == [1], "not one table of records with one key")
    partial = {head["mode"] == "incremental", head["key"] == "updated", bool(head["changedSince"])}
    need(len(partial) == 1, "the whole list, but only what changed since a time")
    chain, least = Chain(records, keys, kept), instant(head["changedSince"]) - 1 if head["changedSince"] else -EVER
    for number, line in enumerate(lines, 2):
        try:
            need("broken" not in line, "the chain broke")
            kind = next((kind for kind in LINES if kind in line), None)
            need(kind and line.keys() <= set(LINES[kind].split()), "a line of another form")
            need(all(type(line[name]) is int and line[name] >= 0 for name in COUNTS if name in line), "a count that is none")
            need(all(line[name] is True for name in ("descending", "last", "local") if name in line), "a mark is there or not")
            getattr(chain, kind)(line)
        except ValueError as why:
            raise ValueError(f"line {number} of the certificate: {why}")
    local = {"local" in line for line in lines if "range" in line}
    need(local == {manifest["clock"] == "local"}, "the clock is not that of the manifest")
    need(chain.ended and chain.down == least, "the chain does not reach the end of the list")
    need(chain.place == len(records), "the table has records that no window took")
    # Over `updated`, and where each status is read, a record may come twice, and is left the second time.
    if manifest["ordering"] == "created":
        left = sum(line.get("left", 0) for line in itertools.takewhile(lambda line: "status" not in line, lines))
        need(left <= kept, f"{left} records have no row, and rejected.jsonl has fewer")
    need(chain.windows == manifest["windows"], f"{chain.windows} windows, not {manifest['windows']}")
    need(bool(chain.found) == bool(chain.statuses), "the statuses were not sampled again after the read")
    said = "hidden" if manifest.get("hiddenFound") else "clear" if "statusCheck" in manifest else None
    need(said == chain.found, "whether the list hides records is not as the manifest says")
    need(not chain.wanted, "a status was not read")
    need(instant(end["completeThrough"]) <= chain.through, "complete through a later time than the responses show")
    return "ACCEPT", f"{what}, complete through {end['completeThrough']}"

def judge(folder):
    """The answer, and why."""
    try:
        return check(pathlib.Path(folder).resolve())
    except NotImplementedError as why:
        return "NOT CHECKED", why
    except MemoryError:
        return "NOT CHECKED", "there is too little memory here"
    except ValueError as why:
        return "REJECT", why
    except OSError as why:
        return "REJECT", f"{why.filename or 'a file'} cannot be read: {why.strerror}"
    except Exception as why:  # Files that cannot be read as what they claim to be.
        return "REJECT", f"it cannot be read as an export: {why!r}"

if __name__ == "__main__":
    if len(sys.argv) < 2:
        print("usage: check-certificate.py FOLDER..., with the folders of exports")
        sys.exit(2)
    answers = set()
    for folder in sys.argv[1:]:
        answer, why = judge(folder)
        print(f"{folder}: {answer}" if len(sys.argv) > 2 else answer, why)
        answers.add(answer)
    sys.exit(next(code for answer, code in EXITS.items() if answer in answers))
