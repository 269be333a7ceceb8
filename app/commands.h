#pragma once

namespace CLI {
class App;
}

namespace sheaf {

/// Each adds one command to the program. A command sets `exit_code` where it can end well with another one
/// than 0, and throws sheaf::Error where it cannot go on.
void add_run_command(CLI::App& app, int& exit_code);
void add_prefill_command(CLI::App& app, int& exit_code);
void add_store_command(CLI::App& app, int& exit_code);
void add_merge_command(CLI::App& app, int& exit_code);
void add_plan_command(CLI::App& app, int& exit_code);
void add_verify_command(CLI::App& app, int& exit_code);
void add_verify_run_command(CLI::App& app, int& exit_code);
void add_train_data_command(CLI::App& app, int& exit_code);
void add_convert_command(CLI::App& app, int& exit_code);
void add_inspect_command(CLI::App& app);
void add_tokenize_command(CLI::App& app);
void add_bench_command(CLI::App& app);
void add_estimate_command(CLI::App& app);
void add_report_command(CLI::App& app);
void add_show_command(CLI::App& app);
void add_review_command(CLI::App& app);
void add_score_command(CLI::App& app);
void add_calibrate_command(CLI::App& app);
void add_eval_command(CLI::App& app, int& exit_code);
void add_doctor_command(CLI::App& app, int& exit_code);
void add_completion_command(CLI::App& app);
void add_man_command(CLI::App& app);

}  // namespace sheaf
