"""The two jobs, from a file to a folder.

Each job reads a file, does its work and writes a folder of its own, by the one protocol of
:mod:`bayes_sdc.jobs.writing`. A folder that holds a run is not written to again.

``release/`` holds what may leave, ``held/`` the same where a check failed, until it is approved:

- ``NAME_synthetic.csv`` (flows): the table with synthetic small counts, in the format of the input;
  everything else as it was. With several data sets the whole table as often, numbered by a first
  column ``dataset``.
- ``NAME_protected.csv`` (persons, where they are treated): the keys and columns that were named,
  in the format of the input, records in random order.
- ``report.html``: the external report: rules, verdicts, rounded measures.

``confidential/`` of a table of flows:

- ``report.html``: the internal report: convergence, what the model learned, fit, flows and totals
  before and after, intruder risk, the exact call.
- ``posterior.nc``: the posterior, an ArviZ DataTree as netCDF. The log rate of a cell is ``beta``
  of its origin plus ``gamma`` of its destination, plus covariates times ``coefficient``.
- ``risk_by_cell.csv``: for each small cell the true and the released count, the probability of
  every candidate count, the worst k-hat, the Monte Carlo error.
- ``risk_by_release.csv``, ``risk_by_datasets.csv``: the risk over independent releases, and as the
  number of data sets grows.
- ``risk_by_true_count.csv``, ``risk_by_group.csv``, ``risk_by_area.csv``,
  ``risk_by_area_size.csv``: the risk of classes of cells.
- ``gain_by_prior.csv``, ``gain_by_cell.csv``, ``log_ratios.csv``: what the release adds, for each
  prior and cell, and what one count can change of the release's distribution.
- ``combined_totals.csv``: with several data sets, totals and net migration with intervals.
- ``totals_not_to_publish.csv``: where totals are kept, those that must not be published because
  they are kept in sum only, or are coarser ones that tell these apart, and why.
- ``published_totals.csv``, ``given_totals.csv``: where totals are published, the bounds that they
  leave each small count, and its probabilities given the release and them.
- ``uses.csv``: what a demographer can do with the release, use by use, and what not.
- ``other_protections.csv``: risk and utility beside rounding, noise, suppression and others.
- ``groups.csv``: R-hat, effective sample size and verdict of each group, worst first.
- ``margins.csv``: totals by area before and after.
- ``predictive_counts.csv``, ``predictive_counts_by_size.csv``: how many 1s, 2s, ... the model
  expects, in all and by size of the group.

``confidential/`` of a file of persons:

- ``report.html``: the internal report.
- ``risk_by_record.csv``: f, F, p and risk of each record, numbered from 1 in the order of the file;
  ``risk_recommended``, of sample uniques by latent classes and else the closed form; by every model
  its risk, a 95 % interval of the risk over the parameters of the model, and one of 1/F itself
  (``inverse_F_...``); number and risk of its household.
- ``risk_by_household.csv``, ``risk_by_combination.csv``: the same by household and by combination.
- ``risk_of_uniques.csv``: the risk of each sample unique by latent classes.
- ``uniques_by_key.csv``, ``uniques_by_value.csv``: sample uniques that are left without each key,
  and with coarser values of it; and those of each value.
- ``combinations_by_size.csv``: how many combinations one record has, two records, and so on.
- ``comparison_of_methods.csv``: expected population uniques and matches by every method, with what
  each assumes.
- ``comparison_of_records.csv``, ``comparison_of_rankings.csv``, ``disagreements.csv``: the risk of
  each sample unique by every method, how the rankings agree, and where they do not.
- ``key_sets.csv``, ``treatments.csv``: sets of keys, and treatments, side by side.
- ``changes_by_record.csv``, ``risk_after_treatment.csv``: true and released values of every treated
  record, and the risk of every record afterwards.
- ``utility_of_tables.csv``, ``utility_of_regressions.csv``, ``rare_levels.csv``,
  ``proposed_recodings.csv``, ``attribute_risk.csv``: what a treated file is good for, and what was
  asked for beside.

``run.json``, in both: the call, seed, versions, input hash, main numbers, checks and the names of
the files; of an approved release also the reason and the date.
"""
