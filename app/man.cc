#include <fmt/format.h>

#include "app/command_tree.h"
#include "app/commands.h"
#include "app/terminal.h"
#include "core/text/utf8.h"

namespace sheaf {
namespace {

/// Text as roff takes it: a hyphen that can be copied, a list of choices that can be broken, nothing but
/// ASCII, no line that looks like a request.
std::string roff(const std::string& text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const Decoded next = decode_valid(text.data() + at);
    const auto c = static_cast<char>(next.point);
    if (next.point >= 0x80)
      out += fmt::format("\\[u{:04X}]", next.point);
    else if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else if (c == '|')
      out += "|\\:";
    else
      out += c;
    at += static_cast<size_t>(next.bytes);
  }
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

std::string bold(const std::string& text) {
  return "\\fB" + roff(text) + "\\fR";
}

std::string italic(const std::string& text) {
  return "\\fI" + roff(text) + "\\fR";
}

std::string entry(const std::string& term, const std::string& text) {
  return ".TP\n" + term + "\n" + roff(text) + "\n";
}

/// "-q, --quiet" or "--limit N".
std::string option_term(const ArgumentFacts& option) {
  std::string term;
  for (const std::string& name : option.names) term += (term.empty() ? "" : ", ") + bold(name);
  return option.value.empty() ? term : term + " " + italic(option.value);
}

std::string command_section(const CommandFacts& command) {
  std::string usage = bold("sheaf " + command.name) + " [" + italic("options") + "]";
  for (const ArgumentFacts& operand : command.operands) usage += " " + italic(operand.usage());
  std::string text = fmt::format(".SS {}\n{}\n.PP\n{}\n", roff(command.name), usage, roff(command.help));
  for (const ArgumentFacts& operand : command.operands) text += entry(italic(operand.value), operand.help);
  for (const ArgumentFacts& option : command.options)
    if (option.names.back() != "--help") text += entry(option_term(option), option.help);
  for (const std::string& line : examples_of(command.name)) text += ".PP\n.nf\n" + roff(line) + "\n.fi\n";
  return text;
}

std::string man_page(const CLI::App& app) {
  const std::vector<CommandFacts> commands = describe_commands(app);
  std::string brief(kAbout, std::string_view(kAbout).find('.'));
  brief[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(brief[0])));

  std::string page = fmt::format(".TH SHEAF 1 \"\" \"sheaf {}\" \"User Commands\"\n", SHEAF_VERSION);
  page += ".SH NAME\nsheaf \\- " + roff(brief) + "\n.SH SYNOPSIS\n" + bold("sheaf") + " " +
          italic("command") + " [" + italic("options") + "] " + italic("operands") + "\n.SH DESCRIPTION\n" +
          roff(kAbout) + "\n";
  for (const ArgumentFacts& option : commands[0].options) page += entry(option_term(option), option.help);
  page += ".SH COMMANDS\n";
  for (const CommandFacts& command : commands)
    if (!command.name.empty()) page += command_section(command);
  page += ".SH EXIT STATUS\n";
  for (const ExitCode& exit : kExitCodes) page += entry(bold(std::to_string(exit.code)), exit.meaning);
  page += ".SH FILES\n";
  page += entry(italic("JOB"), "What to read, compute and write, in YAML; docs/job.md explains every key.");
  page += entry(italic("OUTPUT/rows-*.jsonl"),
                "One row per record, in input order (.parquet if the job says so).");
  page += entry(italic("OUTPUT/rejects.jsonl"),
                "The records that could not be used, each with its place and the reason.");
  page += entry(italic("OUTPUT/report.json") + ", " + italic("OUTPUT/report.html"),
                "What the run did, how long it took and what it cost.");
  page += entry(
      italic("OUTPUT/manifest.json") + ", " + italic("OUTPUT/journal") + ", " + italic("OUTPUT/_SUCCESS"),
      "Checksums of every file; the record of committed work; a marker, written last, that the run is "
      "complete.");
  page += ".SH ENVIRONMENT\n";
  page += entry(bold("NO_COLOR"), "If set and not empty, output has no colours.");
  page += entry(bold("TERM"), "If it is dumb, output has no colours and no line is rewritten.");
  page += entry(bold("CUDA_VISIBLE_DEVICES"), "The GPUs that CUDA may use; cuda:N counts only these.");
  page += ".SH EXAMPLES\n";
  for (const FirstCommand& each : kFirstCommands) page += entry(bold(each.line), each.about);
  return page;
}

}  // namespace

void add_man_command(Program& program) {
  add_command(program, "man", "Print the manual page for man(1): sheaf man | man -l -", {},
              [&program] { print_text(man_page(program.app)); });
}

}  // namespace sheaf
