"""Verifies a sluice archive in a directory: verify.py DIR VKEY; exit 0 whole, 1 broken with each break on a line, 2 no verdict.
Written from docs/archive/format.md, without code of sluice. README.md lists its requirements and limits."""
import base64, errno, functools, hashlib, json, re, stat, sys
from pathlib import Path
try:
    import zstandard
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
except ImportError as error:
    sys.exit(print(f"NO VERDICT: {error}. Install the packages: python3 -m pip install zstandard==0.25.0 cryptography", file=sys.stderr) or 2)
UNREAD = (OSError, MemoryError, RecursionError)  # of the machine, not of the archive
KINDS = "page start stop config key checkpoint anchor segment hold pruned erased lake_cut lake lake_erased reconciled succession manifest".split()
def need(condition, what, error=ValueError):
    if not condition: raise error(what)
def read(path):  # None: there is no such file
    try:
        return path.read_bytes() if stat.S_ISREG(path.stat().st_mode) and path.stat().st_size < 2**31 else None
    except OSError as error:
        need(error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP), f"{error}", OSError)
def sha(*parts): return hashlib.sha256(b"".join(parts)).digest()
def head_of(note, vkey):  # C2SP signed-note and tlog-checkpoint
    need(note.endswith(b"\n"), "the checkpoint is no whole note")
    text, lines = note.decode().rsplit("\n\n", 1)
    (origin, size, root), (name, key) = text.split("\n")[:3], vkey
    need(origin == name or re.fullmatch(re.escape(name) + r"/\d+", origin), "the key is of another log")
    own = sha(f"{origin}\n".encode(), key)[:4]
    signed = [base64.b64decode(line.split(" ")[2]) for line in lines.split("\n") if line.startswith(f"\u2014 {origin} ")]
    need(own in [one[:4] for one in signed], "not signed by the key")
    for one in [one[4:] for one in signed if one[:4] == own]: Ed25519PublicKey.from_public_bytes(key[1:]).verify(one, f"{text}\n".encode())
    return origin, int(size), base64.b64decode(root), key
def grow(row, n, leaf):  # RFC 6962: adds leaf n to a tree, kept as the roots of its full subtrees, the largest first
    while n & 1: leaf, n = sha(b"\1", row.pop(), leaf), n >> 1
    row.append(leaf)
def root_of(row): return functools.reduce(lambda right, left: sha(b"\1", left, right), reversed(row)) if row else sha()
def entries_in(place, size):  # C2SP tlog-tiles
    for first in range(0, size, 256):
        width, (*above, last) = min(256, size - first), f"{first // 256:,}".split(",")
        path = Path(place, "tile/entries", *(f"x{one:0>3}" for one in above), f"{last:0>3}")
        wider = [path.with_name(f"{path.name}.p") / str(n) for n in range(width, 256)] if width < 256 else []
        data = read(next((one for one in wider if one.is_file()), path)) or b""
        for i in range(width):
            length = int.from_bytes(data[:2], "big")
            need(len(data) >= 2 + length, f"{path} ends within entry {first + i}")
            yield first + i, data[2 : 2 + length]
            data = data[2 + length :]
def records_in(body, path):
    text = body.decode("utf-8", "surrogateescape")  # keeps every byte
    blank, value, i = re.compile(r"[\ufeff\s,:]*"), json.JSONDecoder(parse_int=str, parse_float=str).raw_decode, 0
    for name in path.split(".") if path else []:
        at, i = blank.match(text, blank.match(text, i).end() + 1).end(), None
        while text[at] != "}":
            key, at = value(text, at)
            at = blank.match(text, at).end()
            i = at if key == name else i  # of a repeated key the last one counts
            at = blank.match(text, value(text, at)[1]).end()
    i = blank.match(text, i).end()
    need(text[i] == "[", "there is no list of records")
    at, records = blank.match(text, i + 1).end(), []
    while text[at] != "]":
        end = value(text, at)[1]
        records.append(text[at:end].encode("utf-8", "surrogateescape"))
        at = blank.match(text, end).end()
    return records
def check_page(entry, data, erasures):
    body, gone, uids, count = entry["body"], {}, entry["uids"], entry["kept"]
    for one in [one for one in erasures if one["page"]["at"] == entry["body"]["at"]]:
        body = one["body"]
        gone.update((record["place"], record["sha256"]) for record in one["records"])
    end = body["at"] + body["length"]
    behind = data[end + 8 : end + 8 + uids["bytes"]]
    is_framed = data[end : end + 8] == b"\x50\x2a\x4d\x18" + uids["bytes"].to_bytes(4, "little")
    need(is_framed and sha(behind).hex() == uids["sha256"], "the uids are others")
    text = zstandard.ZstdDecompressor().decompress(data[body["at"] : end], max_output_size=max(body["bytes"], 1))
    need(len(text) == body["bytes"] and sha(text).hex() == body["sha256"], "the body is another")
    kept = range(count) if count == entry["records"] else [int.from_bytes(behind[i : i + 4], "little") for i in range(32 * count, len(behind), 4)]
    need(len(behind) == count * (32 if count == entry["records"] else 36), "the number of uids is another")
    records, row = records_in(text, entry["items"]) if entry["kind"] != "answer" else [], []
    for n, place in enumerate(kept):
        need(place not in gone or records[place] == b"null", "a record is in the place of an erased one")
        grow(row, n, sha(b"\0", bytes.fromhex(gone[place]) if place in gone else sha(records[place])))
    need(len(records) == entry["records"] or entry["kind"] == "answer", "the number of records is another")
    need(count == entry["events"]["count"] and root_of(row).hex() == entry["events"]["root"], "the records are others")
class Archive:
    def __init__(self, place, vkey):
        kept = [one for one in place.glob("checkpoints/????/??/??/" + "[0-9]" * 20 + ".*") if one.suffix in (".note", ".tsr", ".cosig")]
        self.place, self.manifest, row, note = place, read(place / "archive.json") or b"", [], read(place / "checkpoint") or b""
        self.origin, self.size, root, own = head_of(note, vkey)
        sizes, same = {int(one.stem) for one in kept}, [one for one in kept if one.name == f"{self.size:020}.note"]
        need(max(sizes, default=0) <= self.size, "checkpoints/ has a newer one")  # it was listed first: a writer may run
        need(all(head_of(read(one) or note, vkey)[:3] == (self.origin, self.size, root) for one in same), "checkpoints/ has another one")
        self.leaves, self.roots, self.pruned, self.erased, self.heads, self.left, self.pages, self.missed, key = [], {}, {}, {}, {}, 0, 0, [], json.loads(self.manifest)["key"]
        for index, data in entries_in(place, self.size):
            self.roots.update({index: root_of(row)} if index in sizes else {})
            self.leaves.append(sha(b"\0", data))
            grow(row, index, self.leaves[-1])
            entry = json.loads(data, object_pairs_hook=lambda pairs: dict(pairs) if len(dict(pairs)) == len(pairs) else None)
            key = entry["vkey"] if entry["t"] == "key" else key
            self.pruned.update({entry["object"]: index} if entry["t"] == "pruned" else {})
            if entry["t"] == "erased": self.erased.setdefault(entry["page"]["segment"], []).append(entry)
        need(root_of(row) == root, "the entries do not lead to the signed root")
        need(base64.b64decode(key.split("+", 2)[2]) == own, "the key that signs now is another")
    def check(self, index, entry):
        kind, is_more, self.left = entry["t"], self.left > 0, max(self.left - 1, 0)
        need(kind in KINDS and (index > 0 or kind == "start"), f"a {kind} is of a newer version, or not the start")
        if kind == "page":
            head, self.pages = self.heads.get(entry["stream"], (0, None)), self.pages + 1
            self.heads[entry["stream"]] = entry["seq"] + 1, self.leaves[index].hex()
            need((entry["seq"], entry["prev"]) == head, f"the chain of {entry['stream']} breaks at {entry['seq']}")
            body = entry["body"]
            need(is_more and body["segment"] == self.segment and body["at"] >= self.end, "the page is of another segment, or in the place of another page")
            self.end = body["at"] + body["length"] + 8 + entry["uids"]["bytes"]
            check_page(entry, self.data, self.erasures) if self.data is not None else self.missed.append(index)
        need(kind == "page" or not is_more, "pages of the segment before are missing")
        if kind == "segment":
            self.left, self.segment, self.data, self.erasures, self.end = entry["pages"], entry["object"], None, [], 0
            data, erased = read(self.place / entry["object"]), self.erased.get(self.segment, [])
            need(data is not None or self.pruned.get(self.segment, -1) > index, f"{self.segment} is missing")
            facts = data and (len(data), sha(data).hex())
            if data is not None and facts != (entry["bytes"], entry["sha256"]):
                fits = [i for i, one in enumerate(erased) if facts == (one["segment"]["bytes"], one["segment"]["sha256"])]
                need(fits, f"{self.segment} is not as its entry says")
                self.erasures = erased[: fits[-1] + 1]
            self.data = data
        if kind in ("checkpoint", "anchor", "manifest"):
            data = read(self.place / entry["object"]) or b""
            need(sha(data).hex() == entry["sha256"], f"{entry['object']} is missing or another")
            root = self.roots[entry["size"]] if kind == "checkpoint" else None
            head = root and f"{self.origin}\n{entry['size']}\n{base64.b64encode(root).decode()}\n".encode()
            need(root is None or root.hex() == entry["root"] and data.startswith(head), "the root was another")
        need(kind != "start" or sha(self.manifest).hex() == entry["archive"], "archive.json is another")
def main(place="", vkey="", *others):
    place, parts, faults = Path(place), re.fullmatch(r"(.+)\+([0-9a-f]{8})\+([A-Za-z0-9+/]{44})", vkey.strip()), []
    key = base64.b64decode(parts[3]) if parts else b""
    need(key[:1] == b"\1" and sha(f"{parts[1]}\n".encode(), key)[:4].hex() == parts[2] and not others, "call verify.py DIR VKEY, with the text of the vkey (NAME+ID+KEY), not its file", OSError)
    need(read(place / "checkpoint") or read(place / "archive.json"), f"no archive is in {place}: of several shards, give the directory of one", OSError)
    archive = Archive(place, (parts[1], key))
    for index, data in entries_in(place, archive.size):
        try:
            archive.check(index, json.loads(data) if sha(b"\0", data) == archive.leaves[index] else "it changes while it is read")
        except Exception as error:  # any content of a file is a break, with its position
            faults.append("UNREAD" if isinstance(error, UNREAD) else "BROKEN")
            print(f"{faults[-1]} entry {index}: {ascii(f'{type(error).__name__}: {error}')}")
    need("BROKEN" not in faults and archive.left == 0, "see above; or pages of the last segment are missing")
    need(not faults, "the entries above could not be read", OSError)
    print(f"whole: {archive.origin}, {archive.size} entries, {archive.pages} pages, {len(archive.missed)} without their bodies")
try:
    main(*sys.argv[1:])
except Exception as error:
    verdict, code = ("NO VERDICT", 2) if isinstance(error, UNREAD) else ("BROKEN", 1)
    sys.exit(print(f"{verdict}: {ascii(f'{type(error).__name__}: {error}'.replace('OSError: ', ''))}", file=sys.stderr) or code)
