// Verifies a sluice archive in a directory: verify DIR VKEY; exit 0 whole, 1 broken, with the first break on a line, 2 no verdict.
// Written from docs/archive/format.md, without code of sluice. README.md says how to build it and lists its limits.
package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

type part struct {
	Segment, Sha256, Root           string
	At, Length, Bytes, Count, Place int
}
type entry struct {
	T, Kind, Stream, Object, Sha256, Root, Archive, Vkey, Items, Prev string
	Seq, Pages, Bytes, Size, Kept                                     int
	Body, Uids, Page, Segment                                         part
	Events, Records                                                   json.RawMessage // their types depend on the kind
}
type tree []tlog.Hash // RFC 6962, in the order of golang.org/x/mod/sumdb/tlog
func (t tree) ReadHashes(indexes []int64) (hashes []tlog.Hash, err error) {
	for _, index := range indexes {
		hashes = append(hashes, t[index])
	}
	return hashes, nil
}
func (t tree) with(n int64, b []byte) tree { return append(t, must(tlog.StoredHashes(n, b, t))...) }
func (t tree) root(n int) [32]byte         { return must(tlog.TreeHash(int64(n), t)) }
func need(condition bool, what any) {
	if !condition {
		panic(what)
	}
}
func must[T any](value T, err error) T {
	need(err == nil, err)
	return value
}
func parsed[T any](text []byte) (value T) { // of what is no JSON: nothing, which no check accepts
	json.Unmarshal(text, &value)
	return value
}
func sum(text []byte) string { return fmt.Sprintf("%x", sha256.Sum256(text)) }
func read(name string) []byte { // nil: there is no such file
	about, err := os.Stat(os.Args[1] + "/" + name)
	if os.IsNotExist(err) || strings.HasSuffix(fmt.Sprint(err), "not a directory") || strings.HasSuffix(fmt.Sprint(err), "symbolic links") || !must(about, err).Mode().IsRegular() || about.Size() >= 1<<31 {
		return nil
	}
	return must(os.ReadFile(os.Args[1] + "/" + name))
}
func checkPage(e entry, data []byte, erasures []entry, unpacker *zstd.Decoder) {
	body, gone, events, kept := e.Body, map[int]string{}, tree{}, parsed[part](e.Events)
	for _, one := range erasures {
		if one.Page.At == e.Body.At {
			body = one.Body
			for _, record := range parsed[[]part](one.Records) {
				gone[record.Place] = record.Sha256
			}
		}
	}
	frame, uids := data[body.At+body.Length:][:8], data[body.At+body.Length+8:][:e.Uids.Bytes] // of a skippable frame
	text := must(unpacker.DecodeAll(data[body.At:][:body.Length], nil))
	need(string(frame) == "\x50\x2a\x4d\x18"+string(binary.LittleEndian.AppendUint32(nil, uint32(e.Uids.Bytes))) && sum(uids) == e.Uids.Sha256 && len(text) == body.Bytes && sum(text) == body.Sha256, "the body or its uids are others")
	text = []byte(strings.TrimPrefix(string(text), "\ufeff"))
	for _, name := range strings.FieldsFunc(e.Items, func(one rune) bool { return one == '.' }) {
		text = parsed[map[string]json.RawMessage](text)[name]
	}
	records := parsed[[]json.RawMessage](text)
	for n := range e.Kept {
		place := n
		if string(e.Records) != fmt.Sprint(e.Kept) {
			place = int(binary.LittleEndian.Uint32(uids[32*e.Kept+4*n:]))
		}
		need(gone[place] == "" || string(records[place]) == "null", "a record is in the place of an erased one")
		events = events.with(int64(n), must(hex.DecodeString(cmp.Or(gone[place], sum(records[place])))))
	}
	need((e.Kind == "answer" || string(e.Records) == fmt.Sprint(len(records))) && e.Kept == kept.Count && len(uids) == e.Kept*map[bool]int{true: 32, false: 36}[string(e.Records) == fmt.Sprint(e.Kept)] && fmt.Sprintf("%x", events.root(e.Kept)) == kept.Root, "the records are others")
}
func main() {
	i, checked, log, texts, where, heads, unpacker := 0, 0, tree{}, [][]byte{}, map[string][]int{}, map[string]string{}, must(zstd.NewReader(nil, zstd.WithDecoderMaxMemory(1<<30)))
	defer func() {
		if problem := recover(); problem != nil { // whatever a file holds is a break
			_, isUnread := problem.(*fs.PathError)
			fmt.Printf("%s at entry %d: %q\n", map[bool]string{true: "NO VERDICT", false: "BROKEN"}[isUnread], i, fmt.Sprint(problem))
			os.Exit(map[bool]int{true: 2, false: 1}[isUnread])
		}
	}()
	verifier, err := note.NewVerifier(append(os.Args, "", "")[2])
	need(err == nil && len(os.Args) == 3 && (read("checkpoint") != nil || read("archive.json") != nil), &fs.PathError{Op: "expected verify DIR VKEY, an archive in DIR (of several shards: the directory of one) and the text of its vkey, got", Path: fmt.Sprint(os.Args[1:]), Err: fs.ErrInvalid})
	kept := must(fs.Glob(os.DirFS(os.Args[1]), "checkpoints/????/??/??/????????????????????.*"))                              // before the checkpoint: a writer may run
	origin, now, key := strings.Split(string(read("checkpoint")), "\n")[0], os.Args[2], strings.SplitN(os.Args[2], "+", 3)[2] // C2SP signed-note and tlog-checkpoint
	need(origin == verifier.Name() || strings.TrimRight(origin, "0123456789") == verifier.Name()+"/", "the key is of another log")
	by := note.VerifierList(must(note.NewVerifier(must(note.NewEd25519VerifierKey(origin, must(base64.StdEncoding.DecodeString(key))[1:])))))
	head := must(note.Open(read("checkpoint"), by)).Text
	size, root := must(strconv.Atoi(strings.Split(head, "\n")[1])), must(tlog.ParseHash(strings.Split(head, "\n")[2]))
	for _, name := range kept {
		n, err := strconv.Atoi(name[23:43])
		need(err != nil || !strings.Contains(" note tsr cosig ", " "+name[44:]+" ") || n < size || n == size && (name[44:] != "note" || must(note.Open(read(name), by)).Text == head), "checkpoints/ has a newer one, or another one of this size")
	}
	for bundle := []byte(nil); i < size; i++ { // C2SP tlog-tiles
		for width := min(256, size-i); i%256 == 0 && width <= 256 && len(bundle) == 0; width++ {
			bundle = read(strings.Replace(tlog.Tile{H: 8, L: -1, N: int64(i / 256), W: width}.Path(), "tile/8/data", "tile/entries", 1))
		}
		end := 2 + int(binary.BigEndian.Uint16(bundle))
		texts, log, bundle = append(texts, bundle[2:end]), log.with(int64(i), bundle[2:end]), bundle[end:]
		e := parsed[entry](texts[i])
		where[e.T+e.Object+e.Page.Segment], now = append(where[e.T+e.Object+e.Page.Segment], i), cmp.Or(e.Vkey, now)
	}
	need(log.root(len(texts)) == root && strings.HasSuffix(now, "+"+key), "the entries do not lead to the signed root, or to the key")
	const kinds = " start segment checkpoint anchor manifest stop config key hold pruned erased lake_cut lake lake_erased reconciled succession "
	for i = 0; i < len(texts); i++ {
		e := parsed[entry](texts[i])
		need(strings.Contains(kinds, " "+e.T+" ") && (e.T != "start" && i > 0 || e.T == "start" && sum(read("archive.json")) == e.Archive), "of a newer version, no start, a page of no segment, or archive.json is another")
		need((e.T != "checkpoint" || fmt.Sprintf("%x", log.root(e.Size)) == e.Root && strings.HasPrefix(string(read(e.Object)), fmt.Sprintf("%s\n%d\n%s\n", origin, e.Size, tlog.Hash(log.root(e.Size))))) && (!strings.Contains(" checkpoint anchor manifest ", " "+e.T+" ") || sum(read(e.Object)) == e.Sha256), "its file is missing or another, or the root was another")
		if e.T == "segment" {
			data, erased, fits, end := read(e.Object), []entry{}, 0, 0
			is, isPruned := sum(data), data == nil && append([]int{0}, where["pruned"+e.Object]...)[len(where["pruned"+e.Object])] > i
			for n, at := range where["erased"+e.Object] {
				erased = append(erased, parsed[entry](texts[at]))
				if erased[n].Segment.Sha256 == is {
					fits = n + 1
				}
			}
			need(isPruned || fits > 0 || is == e.Sha256, "the segment is missing, or not as its entry says")
			for range e.Pages {
				i++
				page := parsed[entry](texts[i])
				need(page.T == "page" && page.Body.Segment == e.Object && page.Body.At >= end, "it is no page of its segment, or in the place of another page")
				need(fmt.Sprint(page.Seq, " ", page.Prev) == cmp.Or(heads[page.Stream], "0 "), "the chain of its stream breaks")
				end, heads[page.Stream] = page.Body.At+page.Body.Length+8+page.Uids.Bytes, fmt.Sprintf("%d %x", page.Seq+1, [32]byte(tlog.RecordHash(texts[i])))
				if !isPruned {
					checkPage(page, data, erased[:fits], unpacker)
					checked++
				}
			}
		}
	}
	fmt.Printf("whole: %s, %d entries, %d pages, %d bodies\n", origin, len(texts), len(where["page"]), checked)
}
