"""A SimulEval agent that copies the source word by word with a lag of three words."""

from simuleval.agents import TextToTextAgent
from simuleval.agents.actions import Action, ReadAction, WriteAction
from simuleval.utils import entrypoint


@entrypoint
class W(TextToTextAgent):
    """The agent, whose one-letter name appears in the recorded responses."""

    def policy(self) -> Action:
        source, written, ended = self.states.source, len(self.states.target), self.states.source_finished
        if len(source) - written >= 3 or ended:
            return WriteAction(source[written], finished=ended and written + 1 == len(source))
        return ReadAction()
