"""A declarative source on Airbyte's CDK; prints its records as JSON lines: python airbyte_customers.py <service url> <folder>."""
import json
import sys

from airbyte_cdk.entrypoint import launch
from airbyte_cdk.models import ConfiguredAirbyteCatalogSerializer
from airbyte_cdk.sources.declarative.concurrent_declarative_source import ConcurrentDeclarativeSource

url, folder = sys.argv[1:3]
manifest = {
    "version": "6.0.0",
    "type": "DeclarativeSource",
    "check": {"type": "CheckStream", "stream_names": ["customers"]},
    "streams": [{
        "type": "DeclarativeStream",
        "name": "customers",
        "primary_key": ["id"],
        "schema_loader": {"type": "InlineSchemaLoader", "schema": {"type": "object", "properties": {}}},
        "retriever": {
            "type": "SimpleRetriever",
            "requester": {
                "type": "HttpRequester",
                "url_base": url,
                "path": "/customers/",
                "http_method": "GET",
                "request_parameters": {"ordering": "created", "page_size": "100"},
                "request_headers": {"authorization": "Token bench", "x-simple-workspace": "acc_bench"},
            },
            "record_selector": {
                "type": "RecordSelector",
                "extractor": {"type": "DpathExtractor", "field_path": ["results"]},
            },
            "paginator": {
                "type": "DefaultPaginator",
                "page_token_option": {"type": "RequestPath"},
                "pagination_strategy": {
                    "type": "CursorPagination",
                    "cursor_value": "{{ response.next }}",
                    "stop_condition": "{{ not response.next }}",
                },
            },
        },
    }],
    "spec": {"type": "Spec", "connection_specification": {"type": "object", "properties": {}}},
}
catalog = {
    "streams": [{
        "stream": {"name": "customers", "json_schema": {}, "supported_sync_modes": ["full_refresh"]},
        "sync_mode": "full_refresh",
        "destination_sync_mode": "overwrite",
    }]
}
for name, content in {"config": {}, "catalog": catalog}.items():
    with open(f"{folder}/{name}.json", "w") as file:
        json.dump(content, file)
source = ConcurrentDeclarativeSource(
    config={}, catalog=ConfiguredAirbyteCatalogSerializer.load(catalog), state=[], source_config=manifest
)
launch(source, ["read", "--config", f"{folder}/config.json", "--catalog", f"{folder}/catalog.json"])
