// One process of an elastic training of digits, for elastic_soak_test: <folder> <name> <epochs> <milliseconds
// per step> <MNIST's directory, or "-": generated digits>. Writes into the folder the bits and the accuracy
// of its model, the exception of `fit`, and its log.
#include <cstdlib>
#include <fstream>

#include "muster/core/base/log.h"
#include "muster/parallel/nodes.h"
#include "tests/parallel/nodes/node_processes/digits.h"
#include "tests/parallel/nodes/node_processes/exit_status.h"
#include "tests/support/state_bits.h"

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

namespace {

struct Slow final : Listener {
  explicit Slow(std::chrono::milliseconds step) : step_(step) {}
  ListenerScope scope() const override { return ListenerScope::Worker; }
  void onIteration(const IterationEvent&) override { std::this_thread::sleep_for(step_); }
  const std::chrono::milliseconds step_;
};

int train(int argc, char** argv) {
  if (argc != 6) return 2;
  const std::string folder = argv[1], name = argv[2];
  const auto write = [&](const std::string& kind, const std::string& text) {
    const auto path = folder + '/' + kind + '-' + name;
    std::ofstream(path + ".part", std::ios::binary) << text;
    std::filesystem::rename(path + ".part", path);
  };
  std::ofstream log(folder + "/log-" + name);
  setLogSink([&](LogLevel level, std::string_view text) {
    log << text << std::endl;
    printLogLine(level, fmt::format("{}: {}", name, text));
  });
  const auto digits = openDigits(argv[5]);
  auto model = digitsModel();
  std::string problem;
  try {
    ParallelWrapper::Builder(*model)
        .pinThreads(false)
        .averagingFrequency(kDigitsFrequency)
        .listeners({std::make_shared<Slow>(std::chrono::milliseconds(std::atoi(argv[4])))})
        .nodes(Nodes::elastic(
            {.store = folder + "/store", .minNodes = 2, .interface = "lo", .silence = 5s, .patience = 60s}))
        .build()
        .fit(*digits.training, std::atoi(argv[3]));
  } catch (const std::exception& error) {
    problem = error.what();
  }
  const auto bits = stateBits(*model);
  write("bits", {reinterpret_cast<const char*>(bits.data()), bits.size()});
  write("accuracy", fmt::format("{}", model->evaluate(*digits.test).accuracy()));
  write("problem", problem);
  return problem.empty() ? 0 : 3;
}

}  // namespace

int main(int argc, char** argv) {
  return test::exitStatus([&] { return train(argc, argv); });
}
