// An OpenTelemetry Collector with Bindplane's REST API receiver, the storage of its checkpoints and the file exporter. It
// shuts down once it is running: the receiver makes its first poll, over all pages, while it starts.
//
//	bindplane CONFIG
package main

import (
	"context"
	"log"
	"os"
	"time"

	"github.com/observiq/bindplane-otel-contrib/receiver/restapireceiver"
	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/fileexporter"
	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/storage/filestorage"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/envprovider"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"
)

const lookEvery = 10 * time.Millisecond

func byType[F component.Factory](factory F) map[component.Type]F {
	return map[component.Type]F{factory.Type(): factory}
}

func factories() (otelcol.Factories, error) {
	return otelcol.Factories{
		Receivers:  byType[receiver.Factory](restapireceiver.NewFactory()),
		Exporters:  byType[exporter.Factory](fileexporter.NewFactory()),
		Extensions: byType[extension.Factory](filestorage.NewFactory()),
		Telemetry:  otelconftelemetry.NewFactory(),
	}, nil
}

func main() {
	collector, err := otelcol.NewCollector(otelcol.CollectorSettings{
		BuildInfo: component.NewDefaultBuildInfo(),
		Factories: factories,
		ConfigProviderSettings: otelcol.ConfigProviderSettings{
			ResolverSettings: confmap.ResolverSettings{
				URIs: []string{os.Args[1]},
				ProviderFactories: []confmap.ProviderFactory{
					fileprovider.NewFactory(),
					envprovider.NewFactory(),
				},
				DefaultScheme: "env",
			},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		for collector.GetState() != otelcol.StateRunning {
			time.Sleep(lookEvery)
		}
		collector.Shutdown()
	}()
	if err := collector.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}
