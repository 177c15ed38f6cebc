"""The campaign of the Python gateway, against the TypeScript one. `cargo xtask packages` compiles that first."""

import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "gateway-python"))
import test_gateway as campaign  # noqa: E402


class TypeScriptGatewayTest(campaign.GatewayTest):
    def gateway_command(self):
        return [os.environ.get("NODE", "node"), str(HERE / "ledger_gateway.mjs")]
