// What a person at a terminal sees, and what a pipe gets: the program on a pseudo-terminal.
#include <cstdlib>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/app/program.h"
#include "tests/skip.h"

namespace sheaf {
namespace {

/// Whether there are terminals to be had: a bare chroot has no /dev/pts.
bool has_terminals() {
  const int master = posix_openpt(O_RDWR | O_NOCTTY);
  if (master < 0) return false;
  const char* name = grantpt(master) == 0 && unlockpt(master) == 0 ? ptsname(master) : nullptr;
  const bool there = name != nullptr && access(name, R_OK | W_OK) == 0;
  close(master);
  return there;
}

/// Runs a command of the shell on a terminal of 100 columns; what it wrote there.
std::string on_terminal(const std::string& environment, const std::string& command) {
  const std::string line = "exec env -u NO_COLOR TERM=xterm " + environment + " sh -c '" + command + "'";
  const winsize size{30, 100, 0, 0};
  int master = -1;
  const pid_t child = forkpty(&master, nullptr, nullptr, &size);
  if (child == 0) {
    execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
    _exit(127);
  }
  std::string seen;
  char piece[4096];
  // Reading fails once the terminal's last user is gone.
  for (ssize_t got; (got = ::read(master, piece, sizeof piece)) > 0;)
    seen.append(piece, static_cast<size_t>(got));
  ::close(master);
  ::waitpid(child, nullptr, 0);
  return seen;
}

/// Pseudo-terminals are missing alone, or with their file system.
test::Lacking lacking_terminals() {
  return std::filesystem::exists("/dev/pts/ptmx") ? test::Lacking::terminals
                                                  : test::Lacking::terminal_file_system;
}

TEST(Terminal, ErrorsAreColouredOnlyOnATerminalThatWantsIt) {
  SKIP_UNLESS(has_terminals(), lacking_terminals(), "this machine has no pseudo-terminals");
  const std::string wrong = std::string(SHEAF_BINARY) + " run no/such/job.yaml";
  const std::string coloured = on_terminal("", wrong);
  EXPECT_TRUE(coloured.starts_with("\033[1;31msheaf:\033[0m no/such/job.yaml")) << coloured;
  EXPECT_TRUE(on_terminal("NO_COLOR=", wrong).starts_with("\033[1;31m")) << "empty means not set";
  for (const char* plain : {"NO_COLOR=1", "TERM=dumb"}) {
    const std::string text = on_terminal(plain, wrong);
    EXPECT_TRUE(text.starts_with("sheaf: no/such/job.yaml")) << plain << ": " << text;
    EXPECT_EQ(text.find('\033'), std::string::npos) << plain << ": " << text;
  }
  const std::string piped = on_terminal("", wrong + " 2>&1 | cat");
  EXPECT_TRUE(piped.starts_with("sheaf: no/such/job.yaml")) << piped;
  EXPECT_EQ(piped.find('\033'), std::string::npos) << piped;
}

TEST(Terminal, DecodedControlCharactersAreEscaped) {
  SKIP_UNLESS(has_terminals(), lacking_terminals(), "this machine has no pseudo-terminals");
  const TempFolder scratch;
  const std::string model = test::make_tiny_model(scratch);  // a token a byte
  scratch.write("ids", "[27, 91, 50, 74, 194, 155, 51, 49, 109, 10, 255, 9, 122]\n");
  const std::string decode =
      std::string(SHEAF_BINARY) + " tokenize --decode --model " + model + " <" + scratch.path("ids");
  EXPECT_EQ(on_terminal("", decode), "\\x1b[2J\\u009b31m\r\n\\xff\tz\r\n");
  EXPECT_EQ(on_terminal("", decode + " >" + scratch.path("text")), "");
  EXPECT_EQ(read_text(scratch.path("text")),
            "\x1b[2J\xc2\x9b"
            "31m\n\xff\tz\n")
      << "a file gets the bytes";
}

TEST(Terminal, ProgressIsOneLineThatIsWipedAtTheEnd) {
  SKIP_UNLESS(has_terminals(), lacking_terminals(), "this machine has no pseudo-terminals");
  const TempFolder scratch;
  std::string lines;
  for (int i = 0; i < 800; ++i) lines += i % 100 == 0 ? "{\n" : "{\"c\": \"Box\", \"q\": \"What?\"}\n";
  scratch.write("corpus.jsonl", lines);
  scratch.write("job.yaml", "model: {path: " + test::make_tiny_model(scratch) +
                                ", chat: plain}\n"
                                "input: {path: " +
                                scratch.path("corpus.jsonl") +
                                ", context: c, question: q}\n"
                                "task: {kind: ask}\n"
                                "method: {name: separate, max_value_tokens: 100, temperature: 1}\n"
                                "engine: {device: cpu, kernels: reference, window: 50}\n"
                                "cost: {usd_per_hour: 3600}\n"
                                "output: {path: " +
                                scratch.path("out") + "}\n");
  const std::string job = std::string(SHEAF_BINARY) + " run " + scratch.path("job.yaml") + " --restart";
  const std::string seen = on_terminal("", job);
  EXPECT_EQ(seen.find('\033'), std::string::npos) << seen;
  const size_t line = seen.find("\r"), rejects = seen.find(" rejects, $");
  ASSERT_NE(line, std::string::npos) << "no progress in " << seen;
  EXPECT_EQ(seen.find("\r["), line) << seen;
  EXPECT_LT(seen.find(" %), "), rejects) << seen;
  EXPECT_LT(seen.find("/s, "), rejects) << seen;
  const std::string piped = on_terminal("", job + " --limit 100 2>&1 | cat");
  EXPECT_EQ(piped.find("/s, 1 rejects"), std::string::npos) << "progress in a pipe: " << piped;
  EXPECT_EQ(piped.find('\033'), std::string::npos) << piped;
}

}  // namespace
}  // namespace sheaf
