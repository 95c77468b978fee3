"""Campaigns: many trials, run, resumed, checked."""

from streamgauge.campaign.layout import scenario_of, sweep, trial_directory
from streamgauge.campaign.mutants import MutantResult, by_kind, run_mutants, score
from streamgauge.campaign.plan import Extra, Job, check_trials, jobs_for, resume_key, with_dependencies
from streamgauge.campaign.robust import Alternative, Standing, run_alternatives, standings
from streamgauge.campaign.run import CampaignResult, Progress, run, run_jobs
from streamgauge.campaign.trial import EmuSettings, Outcome

__all__ = [
    "Alternative",
    "CampaignResult",
    "EmuSettings",
    "Extra",
    "Job",
    "MutantResult",
    "Outcome",
    "Progress",
    "Standing",
    "by_kind",
    "check_trials",
    "jobs_for",
    "resume_key",
    "run",
    "run_alternatives",
    "run_jobs",
    "run_mutants",
    "scenario_of",
    "score",
    "standings",
    "sweep",
    "trial_directory",
    "with_dependencies",
]
