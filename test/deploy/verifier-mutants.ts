// What the authors of the verifiers in deploy/verifiers could have left out, a check at a time. An attack of verifier-cases.ts
// must show each; a text that is no longer in the program is an error, so that the mutants follow it.

/** One mutant of a verifier. */
export interface Mutant {
  readonly of: 'verify.py' | 'verify.go';
  /** What is wrong then. */
  readonly what: string;
  /** Stands once in the program. */
  readonly from: string;
  readonly to: string;
  /** Why no archive can show the mutant; absent: an attack shows it. */
  readonly equivalent?: string;
}

const python: readonly Omit<Mutant, 'of'>[] = [
  {
    what: 'a key under another id is accepted',
    from: 'need(key[:1] == b"\\1" and sha(f"{parts[1]}\\n".encode(), key)[:4].hex() == parts[2] and ',
    to: 'need(',
  },
  {
    what: 'the name of the log may be any',
    from: 'need(origin == name or re.fullmatch(re.escape(name) + r"/\\d+", origin), "the key is of another log")',
    to: 'pass',
  },
  {
    what: 'nobody need have signed',
    from: 'need(own in [one[:4] for one in signed], "not signed by the key")',
    to: 'pass',
  },
  {
    what: 'the signature is not checked',
    from: 'Ed25519PublicKey.from_public_bytes(key[1:]).verify(one, f"{text}\\n".encode())',
    to: 'pass',
  },
  {
    what: 'a bundle may end early',
    from: 'need(len(data) >= 2 + length, f"{path} ends within entry {first + i}")',
    to: 'pass',
    equivalent: 'the entry has fewer bytes then, and another leaf hash: the root is another',
  },
  {
    what: 'a newer checkpoint in checkpoints/ is not seen',
    from: 'need(max(sizes, default=0) <= self.size, "checkpoints/ has a newer one")',
    to: 'pass',
  },
  {
    what: 'only notes in checkpoints/ count',
    from: 'if one.suffix in (".note", ".tsr", ".cosig")]',
    to: 'if one.suffix == ".note"]',
  },
  {
    what: 'any file in checkpoints/ counts',
    from: 'if one.suffix in (".note", ".tsr", ".cosig")]',
    to: ']',
  },
  {
    what: 'the copy of the newest checkpoint may be another',
    from: 'need(all(head_of(read(one) or note, vkey)[:3] == (self.origin, self.size, root) for one in same), "checkpoints/ has another one")',
    to: 'pass',
  },
  {
    what: 'the copy of the newest checkpoint may be of another size',
    from: 'need(all(head_of(read(one) or note, vkey)[:3] == (self.origin, self.size, root) for one in same), "checkpoints/ has another one")',
    to: '[head_of(read(one) or note, vkey) for one in same]',
  },
  {
    what: 'a key twice in an entry is accepted',
    from: 'dict(pairs) if len(dict(pairs)) == len(pairs) else None)',
    to: 'dict(pairs))',
  },
  {
    what: 'the root is not compared',
    from: 'need(root_of(row) == root, "the entries do not lead to the signed root")',
    to: 'pass',
  },
  {
    what: 'any key of the log counts as the one that signs now',
    from: 'need(base64.b64decode(key.split("+", 2)[2]) == own, "the key that signs now is another")',
    to: 'pass',
  },
  {
    what: 'a kind of a newer version is accepted',
    from: 'need(kind in KINDS and (index > 0 or kind == "start")',
    to: 'need((index > 0 or kind == "start")',
  },
  {
    what: 'the first entry may be any',
    from: 'need(kind in KINDS and (index > 0 or kind == "start")',
    to: 'need(kind in KINDS',
  },
  {
    what: 'the chain of a stream is not checked',
    from: 'need((entry["seq"], entry["prev"]) == head, ',
    to: 'need(True, ',
  },
  {
    what: 'the number in a stream is not checked',
    from: 'need((entry["seq"], entry["prev"]) == head, ',
    to: 'need(entry["prev"] == head[1], ',
  },
  {
    what: 'the page before is not checked',
    from: 'need((entry["seq"], entry["prev"]) == head, ',
    to: 'need(entry["seq"] == head[0], ',
  },
  { what: 'a page may follow no segment', from: 'need(is_more and body', to: 'need(body' },
  {
    what: 'a page may be of another segment',
    from: 'body["segment"] == self.segment and body["at"]',
    to: 'body["at"]',
  },
  {
    what: 'a page may be in the place of another',
    from: ' and body["at"] >= self.end, ',
    to: ', ',
  },
  {
    what: 'a segment may have fewer pages in the middle',
    from: 'need(kind == "page" or not is_more, "pages of the segment before are missing")',
    to: 'pass',
  },
  {
    what: 'a segment may have fewer pages at the end',
    from: 'need("BROKEN" not in faults and archive.left == 0,',
    to: 'need("BROKEN" not in faults,',
  },
  {
    what: 'a missing segment is accepted',
    from: 'need(data is not None or self.pruned.get(self.segment, -1) > index, f"{self.segment} is missing")',
    to: 'pass',
  },
  {
    what: 'the segment may have been pruned before it was written',
    from: 'self.pruned.get(self.segment, -1) > index',
    to: 'self.segment in self.pruned',
  },
  {
    what: 'a segment may differ from its entry',
    from: 'need(fits, f"{self.segment} is not as its entry says")\n                self.erasures = erased[: fits[-1] + 1]',
    to: 'self.erasures = erased',
  },
  {
    what: 'all erasures count, also later ones',
    from: 'erased[: fits[-1] + 1]',
    to: 'erased',
  },
  {
    what: 'the file of an entry may be another',
    from: 'need(sha(data).hex() == entry["sha256"], f"{entry[\'object\']} is missing or another")',
    to: 'pass',
  },
  {
    what: 'manifests are not read',
    from: 'if kind in ("checkpoint", "anchor", "manifest"):',
    to: 'if kind in ("checkpoint", "anchor"):',
  },
  {
    what: 'time stamps are not read',
    from: 'if kind in ("checkpoint", "anchor", "manifest"):',
    to: 'if kind in ("checkpoint", "manifest"):',
  },
  {
    what: 'the root in a checkpoint entry may be another',
    from: 'need(root is None or root.hex() == entry["root"] and data',
    to: 'need(root is None or data',
  },
  {
    what: 'the file of a checkpoint entry may be no checkpoint',
    from: 'root.hex() == entry["root"] and data.startswith(head)',
    to: 'root.hex() == entry["root"]',
  },
  {
    what: 'archive.json may be another',
    from: 'need(kind != "start" or sha(self.manifest).hex() == entry["archive"], "archive.json is another")',
    to: 'pass',
  },
  {
    what: 'the frame of the uids may be any',
    from: 'need(is_framed and sha(behind)',
    to: 'need(sha(behind)',
  },
  {
    what: 'the uids may be others',
    from: 'need(is_framed and sha(behind).hex() == uids["sha256"], ',
    to: 'need(is_framed, ',
  },
  {
    what: 'the body may have another length',
    from: 'need(len(text) == body["bytes"] and sha(text)',
    to: 'need(sha(text)',
  },
  {
    what: 'the body may have another hash',
    from: ' and sha(text).hex() == body["sha256"], "the body is another")',
    to: ', "the body is another")',
  },
  {
    what: 'the number of uids may be any',
    from: 'need(len(behind) == count * (32 if count == entry["records"] else 36), "the number of uids is another")',
    to: 'pass',
  },
  {
    what: 'something may be in the place of an erased record',
    from: 'need(place not in gone or records[place] == b"null", "a record is in the place of an erased one")',
    to: 'pass',
  },
  {
    what: 'the body may have another number of records',
    from: 'need(len(records) == entry["records"] or entry["kind"] == "answer", "the number of records is another")',
    to: 'pass',
  },
  {
    what: 'the number of events may be another',
    from: 'need(count == entry["events"]["count"] and root_of(row)',
    to: 'need(root_of(row)',
  },
  {
    what: 'the records may be others',
    from: ' and root_of(row).hex() == entry["events"]["root"], "the records are others")',
    to: ', "the records are others")',
  },
  {
    what: 'the erased records of a page are not used',
    from: 'gone.update((record["place"], record["sha256"]) for record in one["records"])',
    to: 'pass',
  },
  {
    what: 'of a repeated key the first one counts',
    from: 'i = at if key == name else i',
    to: 'i = at if key == name and i is None else i',
  },
  {
    what: 'a break does not count',
    from: 'need("BROKEN" not in faults and ',
    to: 'need(',
  },
];

const go: readonly Omit<Mutant, 'of'>[] = [
  {
    what: 'the name of the log may be any',
    from: 'need(origin == verifier.Name() || strings.TrimRight(origin, "0123456789") == verifier.Name()+"/", "the key is of another log")',
    to: '_ = verifier',
  },
  {
    what: 'a newer checkpoint in checkpoints/ is not seen',
    from: '|| n < size || n == size && (',
    to: '|| n != size || (',
  },
  {
    what: 'only notes in checkpoints/ count',
    from: '" note tsr cosig "',
    to: '" note "',
  },
  {
    what: 'any file in checkpoints/ counts',
    from: '!strings.Contains(" note tsr cosig ", " "+name[44:]+" ") || ',
    to: '',
  },
  {
    what: 'the copy of the newest checkpoint may be another',
    from: '(name[44:] != "note" || must(note.Open(read(name), by)).Text == head)',
    to: 'head != ""',
  },
  {
    what: 'the copy of the newest checkpoint may be of another size',
    from: 'must(note.Open(read(name), by)).Text == head',
    to: 'must(note.Open(read(name), by)).Text != ""',
  },
  {
    what: 'the root is not compared',
    from: 'need(log.root(len(texts)) == root && ',
    to: 'need(root == root && ',
  },
  {
    what: 'any key of the log counts as the one that signs now',
    from: ' && strings.HasSuffix(now, "+"+key), ',
    to: ', ',
  },
  {
    what: 'a kind of a newer version is accepted',
    from: 'need(strings.Contains(kinds, " "+e.T+" ") && (',
    to: 'need(kinds != "" && (',
  },
  {
    what: 'the first entry may be any',
    from: 'e.T != "start" && i > 0 ||',
    to: 'e.T != "start" ||',
  },
  {
    what: 'archive.json may be another',
    from: 'e.T == "start" && sum(read("archive.json")) == e.Archive)',
    to: 'e.T == "start")',
  },
  {
    what: 'the root in a checkpoint entry may be another',
    from: 'fmt.Sprintf("%x", log.root(e.Size)) == e.Root && strings',
    to: 'strings',
  },
  {
    what: 'the file of a checkpoint entry may be no checkpoint',
    from: ' && strings.HasPrefix(string(read(e.Object)), fmt.Sprintf("%s\\n%d\\n%s\\n", origin, e.Size, tlog.Hash(log.root(e.Size))))',
    to: '',
  },
  {
    what: 'the file of an entry may be another',
    from: ' || sum(read(e.Object)) == e.Sha256), ',
    to: ' || true), ',
  },
  {
    what: 'manifests are not read',
    from: '" checkpoint anchor manifest "',
    to: '" checkpoint anchor "',
  },
  {
    what: 'time stamps are not read',
    from: '" checkpoint anchor manifest "',
    to: '" checkpoint manifest "',
  },
  {
    what: 'a missing segment is accepted',
    from: 'data == nil && append([]int{0}, where["pruned"+e.Object]...)[len(where["pruned"+e.Object])] > i',
    to: 'data == nil',
  },
  {
    what: 'a segment may differ from its entry',
    from: 'need(isPruned || fits > 0 || is == e.Sha256, "the segment is missing, or not as its entry says")',
    to: '',
  },
  {
    what: 'all erasures count, also later ones',
    from: 'erased[:fits]',
    to: 'erased',
  },
  {
    what: 'a page need be no page',
    from: 'need(page.T == "page" && page',
    to: 'need(page',
  },
  {
    what: 'a page may be of another segment',
    from: 'page.Body.Segment == e.Object && page',
    to: 'page',
  },
  {
    what: 'a page may be in the place of another',
    from: ' && page.Body.At >= end, ',
    to: ' && end >= 0, ',
  },
  {
    what: 'the chain of a stream is not checked',
    from: 'need(fmt.Sprint(page.Seq, " ", page.Prev) == cmp.Or(heads[page.Stream], "0 "), "the chain of its stream breaks")',
    to: '',
  },
  {
    what: 'the number in a stream is not checked',
    from: 'need(fmt.Sprint(page.Seq, " ", page.Prev) == cmp.Or(heads[page.Stream], "0 "), ',
    to: 'need(strings.HasSuffix(cmp.Or(heads[page.Stream], "0 "), " "+page.Prev), ',
  },
  {
    what: 'the page before is not checked',
    from: 'need(fmt.Sprint(page.Seq, " ", page.Prev) == cmp.Or(heads[page.Stream], "0 "), ',
    to: 'need(strings.HasPrefix(cmp.Or(heads[page.Stream], "0 "), fmt.Sprint(page.Seq, " ")), ',
  },
  {
    what: 'the bodies are not read',
    from: 'checkPage(page, data, erased[:fits], unpacker)',
    to: '_ = unpacker',
  },
  {
    what: 'the frame of the uids may be any',
    from: 'need(string(frame) == "\\x50\\x2a\\x4d\\x18"+string(binary.LittleEndian.AppendUint32(nil, uint32(e.Uids.Bytes))) && ',
    to: 'need(len(frame) == 8 && ',
  },
  { what: 'the uids may be others', from: ' && sum(uids) == e.Uids.Sha256', to: '' },
  { what: 'the body may have another length', from: ' && len(text) == body.Bytes', to: '' },
  { what: 'the body may have another hash', from: ' && sum(text) == body.Sha256', to: '' },
  {
    what: 'something may be in the place of an erased record',
    from: 'need(gone[place] == "" || string(records[place]) == "null", "a record is in the place of an erased one")',
    to: '',
  },
  {
    what: 'the body may have another number of records',
    from: '(e.Kind == "answer" || string(e.Records) == fmt.Sprint(len(records))) && ',
    to: '',
  },
  { what: 'the number of events may be another', from: 'e.Kept == kept.Count && ', to: '' },
  {
    what: 'the records may be others',
    from: ' && fmt.Sprintf("%x", events.root(e.Kept)) == kept.Root, ',
    to: ', ',
  },
  { what: 'a break is no failure', from: 'false: 1}', to: 'false: 0}' },
  {
    what: 'the segment may have been pruned before it was written',
    from: 'append([]int{0}, where["pruned"+e.Object]...)[len(where["pruned"+e.Object])] > i',
    to: 'where["pruned"+e.Object] != nil',
  },
  {
    what: 'the number of uids may be any',
    from: 'len(uids) == e.Kept*map[bool]int{true: 32, false: 36}[string(e.Records) == fmt.Sprint(e.Kept)] && ',
    to: '',
  },
];

/** All of them. */
export const mutants: readonly Mutant[] = [
  ...python.map((one) => ({ ...one, of: 'verify.py' }) as const),
  ...go.map((one) => ({ ...one, of: 'verify.go' }) as const),
];
