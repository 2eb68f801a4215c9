#include "muster/core/listeners/detail/kept_checkpoints.h"

#include "tests/support/log_lines.h"
#include "tests/support/test.h"

namespace muster::test {
namespace {

using detail::KeptCheckpoints;
using Names = std::set<std::string>;
using Files = std::deque<std::filesystem::path>;

/// Checkpoints that a training writes.
struct Writing {
  Writing(std::int64_t last, std::int64_t everyEpochs) : kept(directory.path(), "c", last, everyEpochs) {}
  void add(const CheckpointPlace& place) {
    writeFile(kept.path(place), "x");
    kept.add(place);
  }

  TemporaryDirectory directory;
  KeptCheckpoints kept;
};

TEST_CASE("the last checkpoints are kept, and every N-th epoch's beside them") {
  Writing all(0, 0), two(2, 0), also(1, 2);
  for (Writing* one : {&all, &two, &also})
    for (const CheckpointPlace& place : {CheckpointPlace{1}, {2}, {2, 7}, {3}, {4}, {5}}) one->add(place);
  CHECK(all.directory.names().size() == 6);
  CHECK(two.directory.names() == Names{"c-epoch-0004.safetensors", "c-epoch-0005.safetensors"});
  CHECK(two.kept.own() == std::set<std::filesystem::path>{two.kept.path({4}), two.kept.path({5})});
  CHECK(also.directory.names() ==
        Names{"c-epoch-0002.safetensors", "c-epoch-0004.safetensors", "c-epoch-0005.safetensors"});
  CHECK(also.kept.files() == Files{also.kept.path({5})});
  CHECK(also.kept.isForGood({2}));
  CHECK_FALSE(also.kept.isForGood({2, 7}));
  CHECK_FALSE(all.kept.isForGood({2}));
}

TEST_CASE("a file that is written again becomes the newest") {
  Writing all(0, 0);
  for (const std::int64_t epoch : {1, 2, 1}) all.add({epoch});
  CHECK(all.kept.files() == Files{all.kept.path({2}), all.kept.path({1})});
}

TEST_CASE("a training that goes on takes over the directory's checkpoints once; they are not its own yet") {
  Writing before(0, 0);
  for (const std::int64_t epoch : {1, 2, 3}) before.add({epoch});
  std::filesystem::create_directory(before.kept.path({5}));
  KeptCheckpoints kept(before.directory.path(), "c", 1, 2);
  kept.takeOver();
  CHECK(kept.files() == Files{kept.path({1}), kept.path({3})});  // 2 is kept for good, 5 is no file
  CHECK(kept.own().empty());
  kept.removeOld();
  kept.takeOver();
  CHECK(kept.files() == Files{kept.path({3})});
  CHECK_FALSE(std::filesystem::exists(kept.path({1})));
}

TEST_CASE("a file that cannot be removed is a warning, and remains the training's own") {
  Writing one(1, 0);
  one.add({1});
  std::filesystem::remove(one.kept.path({1}));
  std::filesystem::create_directories(one.kept.path({1}) / "full");
  const LogLines lines;
  one.add({2});
  REQUIRE(lines.all().size() == 1);
  CHECK_CONTAINS(lines.all().front(), "an old checkpoint cannot be removed");
  CHECK(one.kept.own().contains(one.kept.path({1})));
  CHECK(one.kept.files() == Files{one.kept.path({2})});
}

}  // namespace
}  // namespace muster::test
