"""County-to-county migration files of the IRS.

:func:`bayes_sdc.read_irs_flows` reads the files since 1990-1991 (CSV, text, and with the extra
``irs`` the ``.xls`` workbooks of the states), puts every row in its class, says which threshold
held, and checks by county that published and other flows add up to the totals.
:func:`bayes_sdc.hidden_flows` tells what the published totals say of flows that are not shown.

Examples
--------
>>> from bayes_sdc import hidden_flows, read_irs_flows
>>> from bayes_sdc.irs.simulate import example_irs_path
>>> inflow = read_irs_flows(example_irs_path("inflow"), years="2010-2011")
>>> flows = inflow.flow_frame()  # as read_flows takes it, with the states as groups
>>> outflow = read_irs_flows(example_irs_path("outflow"), years="2010-2011")
>>> {"lower", "upper"} <= set(hidden_flows(inflow, outflow).columns)
True
"""
