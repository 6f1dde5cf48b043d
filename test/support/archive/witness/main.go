// A witness of transparency-dev behind a loopback port: `witness NAME VKEY...`, where each VKEY
// is that of a log that it knows. It prints its public key and its address, and remembers what it has
// seen until it is ended.
package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"

	f_note "github.com/transparency-dev/formats/note"
	"github.com/transparency-dev/witness/persistence/inmemory"
	"github.com/transparency-dev/witness/witness"
	"golang.org/x/mod/sumdb/note"
)

func main() {
	secret, public, err := note.GenerateKey(rand.Reader, os.Args[1])
	must(err)
	signer, err := f_note.NewSignerForCosignatureV1(secret)
	must(err)
	logs := map[string]note.Verifier{}
	for _, vkey := range os.Args[2:] {
		of, err := note.NewVerifier(vkey)
		must(err)
		logs[of.Name()] = of
	}
	seen, err := witness.New(context.Background(), witness.Opts{
		Persistence: inmemory.New(),
		Signers:     []note.Signer{signer},
		VerifierForLog: func(_ context.Context, origin string) (note.Verifier, bool, error) {
			of, known := logs[origin]
			return of, known, nil
		},
	})
	must(err)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /add-checkpoint", witness.NewHTTPHandler(seen).AddCheckpoint)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	vkey, err := f_note.VKeyToCosignatureV1(public)
	must(err)
	fmt.Printf("%s http://%s\n", vkey, listener.Addr())
	must(http.Serve(listener, mux))
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
