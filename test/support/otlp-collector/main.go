// The OpenTelemetry Collector's own OTLP receiver, over gRPC and HTTP, with a consumer behind it that prints each request it
// takes as a line of OTLP JSON. What a record says decides what it answers: "answer: permanent" is an error for good,
// "answer: busy" one for now, once for each word behind it.
//
//	collector GRPC_ADDRESS HTTP_ADDRESS
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	metric "go.opentelemetry.io/otel/metric/noop"
	trace "go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/zap"
)

// Writes what is taken, a line for each request.
type printer struct {
	mutex sync.Mutex
	tired map[string]bool
}

func (p *printer) take(_ context.Context, logs plog.Logs) error {
	line, err := (&plog.JSONMarshaler{}).MarshalLogs(logs)
	if err != nil {
		return err
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if strings.Contains(string(line), "answer: permanent") {
		return consumererror.NewPermanent(errors.New("not this one"))
	}
	if _, about, found := strings.Cut(string(line), "answer: busy "); found {
		about, _, _ = strings.Cut(about, `"`)
		if !p.tired[about] {
			p.tired[about] = true
			return errors.New("the queue is full")
		}
	}
	_, err = fmt.Printf("%s\n", line)
	return err
}

type host struct{}

func (host) GetExtensions() map[component.ID]component.Component { return nil }

func main() {
	ctx := context.Background()
	factory := otlpreceiver.NewFactory()
	config := factory.CreateDefaultConfig()
	endpoint := func(address string) map[string]any { return map[string]any{"endpoint": address} }
	protocols := map[string]any{"grpc": endpoint(os.Args[1]), "http": endpoint(os.Args[2])}
	given := confmap.NewFromStringMap(map[string]any{"protocols": protocols})
	if err := given.Unmarshal(config); err != nil {
		log.Fatal(err)
	}
	next, err := consumer.NewLogs((&printer{tired: map[string]bool{}}).take)
	if err != nil {
		log.Fatal(err)
	}
	settings := receiver.Settings{
		ID: component.NewID(factory.Type()),
		TelemetrySettings: component.TelemetrySettings{
			Logger:         zap.NewNop(),
			TracerProvider: trace.NewTracerProvider(),
			MeterProvider:  metric.NewMeterProvider(),
			Resource:       pcommon.NewResource(),
		},
	}
	logs, err := factory.CreateLogs(ctx, settings, config, next)
	if err != nil {
		log.Fatal(err)
	}
	if err := logs.Start(ctx, host{}); err != nil {
		log.Fatal(err)
	}
	fmt.Println("listening")
	select {}
}
