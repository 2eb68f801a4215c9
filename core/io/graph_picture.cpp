#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

#include "muster/core/base/error.h"
#include "muster/core/io/atomic_file.h"
#include "muster/core/nn/compile/network_plan.h"
#include "muster/core/nn/computation_graph.h"

namespace muster {
namespace {

/// Quoted for Graphviz.
std::string inQuotes(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + "\"";
}

/// The lines of a label, quoted.
std::string label(std::initializer_list<std::string> lines) {
  std::string text;
  for (const auto& line : lines) {
    if (line.empty()) continue;
    const auto inside = inQuotes(line);
    text += (text.empty() ? "" : "\\n") + inside.substr(1, inside.size() - 2);
  }
  return "\"" + text + "\"";
}

/// Output shapes of vertices by name; empty if an input's shape is open.
class Shapes {
 public:
  explicit Shapes(const ComputationGraphConfiguration& configuration) : network_(configuration) {
    for (const auto& input : configuration.inputs)
      if (input.shape.empty()) return;
    for (const auto& [name, shape] : network_.outputShapes()) shapes_.emplace_back(name, shape.toString());
  }
  std::string of(const std::string& name) const {
    for (const auto& [other, shape] : shapes_)
      if (other == name) return shape;
    return {};
  }

 private:
  ComputationGraph network_;
  std::vector<std::pair<std::string, std::string>> shapes_;
};

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, FileCloser>;

File temporaryFile() {
  File file(std::tmpfile());
  if (!file) throw Error("graph picture: no temporary file can be made");
  return file;
}

/// Runs `dot -Tsvg` from one file into another.
void runDot(const File& in, const File& out) {
  std::string program = "dot", option = "-Tsvg";
  std::array<char*, 3> arguments{program.data(), option.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fileno(in.get()), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, fileno(out.get()), STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = -1;
  const int problem = posix_spawnp(&child, program.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  while (problem == 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  // posix_spawn may leave it to the child's status to report that the program cannot be started, as under
  // qemu-user.
  constexpr int kNotStarted = 127;
  require(
      problem != ENOENT && !(WIFEXITED(status) && WEXITSTATUS(status) == kNotStarted),
      "graph picture: Graphviz's program dot, which draws it, is not installed; toDot() needs no program");
  if (problem != 0)
    throw Error(fmt::format("graph picture: Graphviz's program dot cannot be started: {}",
                            std::generic_category().message(problem)));
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw Error("graph picture: Graphviz's program dot could not draw the graph");
}

std::string contentsOf(const File& file) {
  std::rewind(file.get());
  std::string text;
  std::array<char, 4096> chunk;
  for (std::size_t n; (n = std::fread(chunk.data(), 1, chunk.size(), file.get())) > 0;)
    text.append(chunk.data(), n);
  return text;
}

}  // namespace

std::string ComputationGraphConfiguration::toDot() const {
  const Shapes shapes(*this);
  std::string text = "digraph network {\n  rankdir=TB;\n  node [shape=box, fontname=\"sans-serif\"];\n";
  for (const auto& input : inputs)
    text += fmt::format("  {} [label={}, style=rounded];\n", inQuotes(input.name),
                        label({input.name, input.shape.empty() ? "" : input.shape.toString()}));
  for (const auto& vertex : vertices)
    text +=
        fmt::format("  {} [label={}];\n", inQuotes(vertex.name),
                    label({vertex.name, std::string(vertex.layer.module().type()), shapes.of(vertex.name)}));
  for (const auto& output : outputs) text += fmt::format("  {} [peripheries=2];\n", inQuotes(output.name));
  for (const auto& vertex : vertices)
    for (const auto& input : vertex.inputs)
      text += fmt::format("  {} -> {};\n", inQuotes(input), inQuotes(vertex.name));
  return text + "}\n";
}

void drawSvg(const ComputationGraphConfiguration& configuration, const std::filesystem::path& path) {
  const std::string dot = configuration.toDot();
  const File in = temporaryFile(), out = temporaryFile();
  if (std::fwrite(dot.data(), 1, dot.size(), in.get()) != dot.size() || std::fflush(in.get()) != 0)
    throw Error("graph picture: the temporary file cannot be written");
  std::rewind(in.get());
  runDot(in, out);
  writeFileAtomically(path, contentsOf(out));
}

}  // namespace muster
