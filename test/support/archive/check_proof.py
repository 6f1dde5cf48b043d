"""Checks that a record is in a sluice archive: check_proof.py PROOF RECORD VKEY; exit 0, or 1 and why.

Written after c2sp.org/tlog-proof, signed-note and tlog-checkpoint, RFC 6962, RFC 9162 and RFC 8032;
it shares no code with sluice. `extra` holds the log's entry and the record's path in its page.
"""
import base64, hashlib, json, sys

def need(condition, what):
    if not condition:
        raise ValueError(what)


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def decoded(text):
    data = base64.b64decode(text, validate=True)
    need(base64.b64encode(data).decode() == text, "base64 in another form")
    return data


def root_of(leaf, index, size, path):  # RFC 9162, section 2.1.3.2
    need(0 <= index < size, "index beyond the tree")
    at, last = index, size - 1
    for node in map(decoded, path):
        need(last > 0 and len(node) == 32, "wrong path")
        if at & 1 or at == last:
            leaf = sha256(b"\x01", node, leaf)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            leaf = sha256(b"\x01", leaf, node)
        at, last = at >> 1, last >> 1
    need(last == 0, "path too short")
    return leaf


P, L = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P


def add(a, b):
    e, f = (a[1] - a[0]) * (b[1] - b[0]), (a[1] + a[0]) * (b[1] + b[0])
    g, h = 2 * a[3] * b[3] * D, 2 * a[2] * b[2]
    return (f - e) * (h - g) % P, (h + g) * (f + e) % P, (h - g) * (h + g) % P, (f - e) * (f + e) % P


def times(n, point):
    total = (0, 1, 1, 0)
    while n:
        total = add(total, point) if n & 1 else total
        point, n = add(point, point), n >> 1
    return total


def point_of(data):
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & (2**255 - 1)
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    x = x if (x * x - square) % P == 0 else x * pow(2, (P - 1) // 4, P) % P
    need(y < P and (x * x - square) % P == 0, "not on the curve")
    x = x if x & 1 == sign else P - x
    return x, y, 1, x * y % P


def is_signed(key, text, signature):  # RFC 8032, section 5.1.7
    s = int.from_bytes(signature[32:], "little")
    h = int.from_bytes(hashlib.sha512(signature[:32] + key + text).digest(), "little") % L
    base = point_of((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))
    a, b = times(s, base), add(point_of(signature[:32]), times(h, point_of(key)))
    return s < L and (a[0] * b[2] - b[0] * a[2]) % P == (a[1] * b[2] - b[1] * a[2]) % P == 0


def check(proof, record, vkey):
    name, key_id, typed = vkey.strip().split("+", 2)
    key = decoded(typed)
    need(key[0] == 1 and len(key) == 33 and sha256(name.encode(), b"\n", key)[:4].hex() == key_id, "no key")
    head, note = proof.split("\n\n", 1)
    text, lines = note.rsplit("\n\n", 1)
    signed = [decoded(line.split(" ")[2]) for line in lines.splitlines() if line.startswith(f"\u2014 {name} ")]
    ours = [one[4:] for one in signed if one[:4].hex() == key_id]
    need(ours and all(is_signed(key[1:], f"{text}\n".encode(), one) for one in ours), "not signed by the key")
    (origin, size, root), (first, extra, index, *path) = text.split("\n")[:3], head.split("\n")
    need(first == "c2sp.org/tlog-proof@v1" and origin == name, "not a proof of that log")
    inner, at = json.loads(decoded(extra.removeprefix("extra "))), int(index.removeprefix("index "))
    log = root_of(sha256(b"\0", inner["entry"].encode()), at, int(size), path)
    need(log == decoded(root), "the entry is not in the log")
    events, place = json.loads(inner["entry"])["events"], inner["record"]
    page = root_of(sha256(b"\0", sha256(record)), place["index"], events["count"], place["path"])
    need(page.hex() == events["root"], "the record is not in the page")
    return at


if __name__ == "__main__":
    try:
        print(check(open(sys.argv[1], newline="").read(), open(sys.argv[2], "rb").read(), sys.argv[3]))
    except (ValueError, KeyError, IndexError, TypeError, OSError) as error:
        sys.exit(f"{type(error).__name__}: {error}")
