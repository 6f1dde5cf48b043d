// An independent reader of archives, for the tests: the tree by golang.org/x/mod/sumdb/tlog, the
// checkpoint's signature by x/mod/sumdb/note, the files as C2SP tlog-tiles lays them out. It shares
// no code with sluice. Every failure is told on stderr with exit 1; a success prints size and root.
//
//	oracle log DIR VKEY                  all tiles and entry bundles of a log against its checkpoint
//	oracle since DIR VKEY NOTE           that an older checkpoint is one of the same log
//	oracle proof FILE VKEY RECORD        a C2SP tlog-proof of a record, its inner path in `extra`
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 3 && args[0] == "log":
		return checkLog(args[1], args[2])
	case len(args) == 4 && args[0] == "since":
		return checkSince(args[1], args[2], args[3])
	case len(args) == 4 && args[0] == "proof":
		return checkProof(args[1], args[2], args[3])
	}
	return errors.New("usage: oracle log DIR VKEY | since DIR VKEY NOTE | proof FILE VKEY RECORD")
}

// A checkpoint is tlog-checkpoint's text, which lacks the first line of the Go checksum database's.
func openCheckpoint(data []byte, vkey string) (tlog.Tree, error) {
	verifier, err := note.NewVerifier(vkey)
	if err != nil {
		return tlog.Tree{}, err
	}
	opened, err := note.Open(data, note.VerifierList(verifier))
	if err != nil {
		return tlog.Tree{}, err
	}
	lines := strings.Split(opened.Text, "\n")
	if len(lines) < 4 || lines[0] != verifier.Name() {
		return tlog.Tree{}, fmt.Errorf("no checkpoint of %s: %q", verifier.Name(), opened.Text)
	}
	return tlog.ParseTree([]byte("go.sum database tree\n" + lines[1] + "\n" + lines[2] + "\n"))
}

// tiles reads hash tiles from the places that tlog-tiles gives them.
type tiles struct{ dir string }

func (tiles) Height() int                       { return 8 }
func (tiles) SaveTiles([]tlog.Tile, [][]byte)   {}
func (t tiles) place(level, n, w string) string { return filepath.Join(t.dir, "tile", level, n+w) }

func (t tiles) read(level string, n int64, width int) ([]byte, error) {
	name, partial := fmt.Sprintf("%03d", n%1000), ""
	for rest := n / 1000; rest > 0; rest /= 1000 {
		name = fmt.Sprintf("x%03d/%s", rest%1000, name)
	}
	if width < 256 {
		partial = fmt.Sprintf(".p/%d", width)
	}
	return os.ReadFile(t.place(level, name, partial))
}

func (t tiles) ReadTiles(wanted []tlog.Tile) ([][]byte, error) {
	var all [][]byte
	for _, tile := range wanted {
		data, err := t.read(strconv.Itoa(tile.L), tile.N, tile.W)
		if err != nil {
			return nil, err
		}
		if len(data) != tile.W*tlog.HashSize {
			return nil, fmt.Errorf("tile %d/%d has %d bytes", tile.L, tile.N, len(data))
		}
		all = append(all, data)
	}
	return all, nil
}

func checkLog(dir, vkey string) error {
	data, err := os.ReadFile(filepath.Join(dir, "checkpoint"))
	if err != nil {
		return err
	}
	tree, err := openCheckpoint(data, vkey)
	if err != nil {
		return err
	}
	hashes := tlog.TileHashReader(tree, tiles{dir})
	for start := int64(0); start < tree.N; start += 256 {
		width := int(min(256, tree.N-start))
		bundle, err := tiles{dir}.read("entries", start/256, width)
		if err != nil {
			return err
		}
		indexes := make([]int64, width)
		for i := range indexes {
			indexes[i] = tlog.StoredHashIndex(0, start+int64(i))
		}
		expected, err := hashes.ReadHashes(indexes)
		if err != nil {
			return err
		}
		for i, hash := range expected {
			if len(bundle) < 2 || len(bundle) < 2+int(binary.BigEndian.Uint16(bundle)) {
				return fmt.Errorf("entry %d is cut", start+int64(i))
			}
			end := 2 + int(binary.BigEndian.Uint16(bundle))
			if tlog.RecordHash(bundle[2:end]) != hash {
				return fmt.Errorf("entry %d is not what its tile says", start+int64(i))
			}
			bundle = bundle[end:]
		}
		if len(bundle) > 0 {
			return fmt.Errorf("%d bytes too many behind entry %d", len(bundle), start+int64(width)-1)
		}
	}
	fmt.Println(tree.N, tree.Hash)
	return nil
}

func checkSince(dir, vkey, older string) error {
	data, err := os.ReadFile(filepath.Join(dir, "checkpoint"))
	if err != nil {
		return err
	}
	oldData, err := os.ReadFile(older)
	if err != nil {
		return err
	}
	tree, err := openCheckpoint(data, vkey)
	if err != nil {
		return err
	}
	oldTree, err := openCheckpoint(oldData, vkey)
	if err != nil {
		return err
	}
	proof, err := tlog.ProveTree(tree.N, oldTree.N, tlog.TileHashReader(tree, tiles{dir}))
	if err != nil {
		return err
	}
	if err := tlog.CheckTree(proof, tree.N, tree.Hash, oldTree.N, oldTree.Hash); err != nil {
		return err
	}
	fmt.Println(tree.N, tree.Hash)
	return nil
}

func checkProof(file, vkey, recordFile string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	record, err := os.ReadFile(recordFile)
	if err != nil {
		return err
	}
	head, checkpoint, found := bytes.Cut(data, []byte("\n\n"))
	lines := strings.Split(string(head), "\n")
	if !found || len(lines) < 3 || lines[0] != "c2sp.org/tlog-proof@v1" {
		return errors.New("no tlog-proof")
	}
	extra, err := base64.StdEncoding.Strict().DecodeString(strings.TrimPrefix(lines[1], "extra "))
	if err != nil {
		return err
	}
	var inner struct {
		Entry  string
		Record struct {
			Index int64
			Path  []tlog.Hash
		}
	}
	if err := json.Unmarshal(extra, &inner); err != nil {
		return err
	}
	var entry struct {
		Events struct {
			Root  string
			Count int64
		}
	}
	if err := json.Unmarshal([]byte(inner.Entry), &entry); err != nil {
		return err
	}
	root, err := hashOf(entry.Events.Root)
	if err != nil {
		return err
	}
	digest := sha256.Sum256(record)
	leaf := tlog.RecordHash(digest[:])
	at := inner.Record.Index
	if err := tlog.CheckRecord(inner.Record.Path, entry.Events.Count, root, at, leaf); err != nil {
		return fmt.Errorf("the record in its page: %w", err)
	}
	tree, err := openCheckpoint(checkpoint, vkey)
	if err != nil {
		return err
	}
	index, err := strconv.ParseInt(strings.TrimPrefix(lines[2], "index "), 10, 64)
	if err != nil {
		return err
	}
	var path tlog.RecordProof
	for _, line := range lines[3:] {
		hash, err := tlog.ParseHash(line)
		if err != nil {
			return err
		}
		path = append(path, hash)
	}
	leaf = tlog.RecordHash([]byte(inner.Entry))
	if err := tlog.CheckRecord(path, tree.N, tree.Hash, index, leaf); err != nil {
		return fmt.Errorf("the entry in the log: %w", err)
	}
	fmt.Println(index, at)
	return nil
}

// Hashes within entries are hex.
func hashOf(text string) (tlog.Hash, error) {
	data, err := hex.DecodeString(text)
	if err == nil && len(data) != tlog.HashSize {
		err = fmt.Errorf("no hash: %q", text)
	}
	if err != nil {
		return tlog.Hash{}, err
	}
	return tlog.Hash(data), nil
}
