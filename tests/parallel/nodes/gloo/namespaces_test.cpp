// Trainings over nodes with fixed numbers, by Gloo, in network namespaces, and what their script leaves
// behind.

#include "tests/parallel/nodes/node_processes/checks.h"
#include "tests/parallel/nodes/node_processes/no_namespaces.h"

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

namespace {

Launcher inNamespaces(const std::string& rate) {
  return [rate](const ProcessRun& run) {
    return fmt::format("{} {} {} {} {}/begun {} {}", MUSTER_NAMESPACES, run.nodes, rate, MUSTER_CUT_LINK,
                       run.folder, MUSTER_GLOO_NODE, run.arguments());
  };
}

/// Whether the process exists and is no zombie.
bool lives(const std::string& pid) {
  const auto status = readFile("/proc/" + pid + "/status");
  return !status.empty() && status.find("\nState:\tZ") == std::string::npos;
}

bool waitFor(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + 60s;
  while (!condition() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(10ms);
  return condition();
}

}  // namespace

TEST_CASE("a broken link ends the training on both sides") {
  if (noNamespaces()) return;
  checkSurvivors(inNamespaces("none"), "averaging", "cut", "nothing was heard of node 1 (");
}

TEST_CASE("a link of 1 Mbit/s slows the training, but keeps the bits of one process") {
  if (noNamespaces()) return;
  const TemporaryDirectory folder;
  const auto ended = start(inNamespaces("1mbit"), {2, "averaging", 1, folder.path().string(), "slow"});
  const auto output = readFile(folder / "output");
  CAPTURE(output);
  CHECK(ended == 0);
  for (const std::string node : {"0", "1"}) {
    CHECK(readFile(folder / ("problem" + node)) == "");
    CHECK(readFile(folder / ("bits" + node)) == expectedBits(Averaging{.frequency = 3}, 2, 1, 1));
  }
}

TEST_CASE("a killed script leaves no namespaces, processes or files") {
  if (noNamespaces()) return;
  const TemporaryDirectory folder;
  const auto at = [&](const char* kind, int node) {
    return folder / (std::string(kind) + std::to_string(node));
  };
  // Each node starts a process of its own, and tells its namespace, its store and both processes.
  const std::string program =
      "ip netns identify $$ >space$MUSTER_NODE; echo $MUSTER_STORE >store$MUSTER_NODE; sleep 600 & "
      "echo $$ >shell$MUSTER_NODE; echo $! >child$MUSTER_NODE; touch ready$MUSTER_NODE; wait";
  Process script(
      {MUSTER_NAMESPACES, "2", "none", "/bin/bash", "-c", "cd " + folder.path().string() + "; " + program});
  REQUIRE(waitFor(
      [&] { return std::filesystem::exists(at("ready", 0)) && std::filesystem::exists(at("ready", 1)); }));
  const auto line = [&](const char* kind, int node) {
    const auto text = readFile(at(kind, node));
    return text.substr(0, text.find('\n'));
  };
  const auto space = [&](int node) { return "/run/netns/" + line("space", node); };
  for (int n = 0; n < 2; ++n) {
    REQUIRE(std::filesystem::exists(space(n)));
    REQUIRE(std::filesystem::exists(line("store", n)));
    for (const char* const kind : {"shell", "child"}) REQUIRE(lives(line(kind, n)));
  }
  script.send(SIGKILL);
  CHECK(script.wait(10s) == -1);
  const auto switches = line("space", 0).substr(0, line("space", 0).rfind('-')) + "-switch";
  for (int n = 0; n < 2; ++n) {
    for (const char* const kind : {"shell", "child"}) CHECK(waitFor([&] { return !lives(line(kind, n)); }));
    CHECK(waitFor([&] { return !std::filesystem::exists(space(n)); }));
    CHECK(waitFor([&] { return !std::filesystem::exists(line("store", n)); }));
  }
  CHECK(waitFor([&] { return !std::filesystem::exists("/run/netns/" + switches); }));
}
