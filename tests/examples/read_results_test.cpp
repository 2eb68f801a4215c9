#include "examples/muster/pages.h"
#include "muster/core/comparison/results_file.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/support/skip.h"
#include "tests/support/test.h"
#ifdef MUSTER_WITH_TENSORBOARD
#include "muster/core/listeners/watch/tensorboard/tensorboard_listener.h"
#endif

// examples/read_results.py reads the files that muster writes now.

namespace {

using namespace muster;
using test::TemporaryDirectory;

/// Checks what the script prints for a path; if Python lacks `package`, the case is skipped.
void checkPrinted(const TemporaryDirectory& directory, const std::string& path, const char* package,
                  const std::vector<std::string>& parts) {
  const char* const chosen = std::getenv("MUSTER_PANDAS_PYTHON");
  const std::string python = chosen ? chosen : "python3";
  if (std::system(fmt::format("'{}' -c 'import {}' 2>/dev/null", python, package).c_str()) != 0)
    return test::skip(
        fmt::format("there is no python3 with {} (MUSTER_PANDAS_PYTHON names another)", package));
  const auto out = directory / "out.txt";
  const int status = std::system(fmt::format("'{}' -B '{}' '{}' >'{}'", python, MUSTER_READ_RESULTS,
                                             (directory / path).string(), out.string())
                                     .c_str());
  CHECK(status == 0);
  for (const auto& part : parts) CHECK_CONTAINS(test::readFile(out), part);
}

TEST_CASE("Python reads a model's tensors") {
  const TemporaryDirectory directory;
  MultiLayerNetwork network({.inputShape = {3}, .layers = {Output{.classes = 2}}});
  network.init();
  for (float& value : network.block(BlockKind::Parameters).values.span<float>()) value = 0.25f;
  network.save(directory / "m.safetensors");
  checkPrinted(directory, "m.safetensors", "numpy",
               {"output.weight float32 [2, 3] mean 0.25\n", "counters.epoch int64 [] mean 0\n"});
}

TEST_CASE("pandas reads the points of a comparison") {
  const TemporaryDirectory directory;
  muster::ResultsFile file(directory / "results.jsonl");
  file.join({.common = {{"training.epochs", "1"}}});
  for (const std::int64_t seed : {7, 8}) {
    muster::RunRecord run{.arm = "averaging", .seed = seed};
    run.points = {{.samples = 1234, .score = 0.5}, {.samples = 5678, .score = 0.75}};
    file.add(run);
  }
  checkPrinted(directory, "results.jsonl", "pandas",
               {"arm", "workers", "seed", "on", "samples", "score", "5678"});
  if (std::filesystem::exists(directory / "out.txt"))  // the head, and two points of two runs
    CHECK(std::ranges::count(test::readFile(directory / "out.txt"), '\n') == 5);
}

TEST_CASE("pandas reads files of curves") {
#ifdef MUSTER_WITH_PAGE
  const TemporaryDirectory directory;
  program::writeCurves(
      directory / "runs" / "averaging" / "seed-1.curves.jsonl",
      {.run = "", .group = "averaging", .failed = "", .series = {{"test/accuracy", {{7, 0.875}}}}});
  checkPrinted(directory, "runs", "pandas", {"averaging/seed-1", "test/accuracy", "0.875"});
#else
  test::skip("there is no dygraphs: no files of curves are written");
#endif
}

TEST_CASE("pandas reads event files") {
#ifdef MUSTER_WITH_TENSORBOARD
  const TemporaryDirectory directory;
  TensorBoardListener(directory / "runs" / "seed-1").result("accuracy", 0.875);
  checkPrinted(directory, "runs", "tensorboard.backend.event_processing.event_accumulator, pandas",
               {"seed-1", "accuracy", "0.875"});
#else
  test::skip("there is no protobuf: no event files are written");
#endif
}

}  // namespace
