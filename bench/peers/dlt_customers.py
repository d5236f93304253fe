"""dlt's REST source to CSV files: python dlt_customers.py <service url> <folder>."""
import sys

import dlt
from dlt.sources.rest_api import rest_api_source

url, folder = sys.argv[1:3]
source = rest_api_source({
    "client": {
        "base_url": url,
        "headers": {"authorization": "Token bench", "x-simple-workspace": "acc_bench"},
        "paginator": {"type": "json_link", "next_url_path": "next"},
    },
    "resources": [{
        "name": "customers",
        "endpoint": {
            "path": "customers/",
            "params": {"page_size": 100, "ordering": "created"},
            "data_selector": "results",
        },
    }],
})
pipeline = dlt.pipeline(
    "customers",
    pipelines_dir=f"{folder}/state",
    destination=dlt.destinations.filesystem(f"{folder}/out"),
    dataset_name="export",
)
pipeline.run(source, loader_file_format="csv")
