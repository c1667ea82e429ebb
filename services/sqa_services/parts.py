"""Entry point of this distribution: registers its commands and components with `sqa` and imports nothing else."""

from sqa.core import COMMANDS, QUALITY, TRANSLATORS

TRANSLATORS.register("simuleval", "sqa_services.simuleval.agent:build", "unknown")
QUALITY.register("external", "sqa_services.protocols.external:build")

COMMANDS.register("scorer", "sqa_services.cli.protocols:app")  # in the order of the help
COMMANDS.register("board", "sqa_services.cli.board:board_app")
COMMANDS.register("serve", "sqa_services.cli.protocols:serve_app")
COMMANDS.register("client", "sqa_services.cli.protocols:client_app")
COMMANDS.register("validate", "sqa_services.cli.protocols:validate_app")
