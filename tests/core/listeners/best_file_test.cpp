#include "muster/core/listeners/detail/best_file.h"

#include <doctest/doctest.h>

#include "muster/core/listeners/detail/best_value_note.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/support/fake_trainer.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/thrown.h"

namespace muster::test {

TEST_CASE("the file lacks a better model, and holds its value for a training that is resumed") {
  const TemporaryDirectory directory;
  const auto path = directory / "best.safetensors";
  const Monitored accuracy{.monitor = Monitor::Accuracy};
  MultiLayerNetwork network({.inputShape = {2}, .layers = {Dense{.units = 1}}});
  network.init();
  detail::BestFile file(path, {{"by", "a user"}}, accuracy);
  file.begin(network, true);
  CHECK(file.lacks(0.1));
  ModelWriter writer;
  file.write(writer, network, {}, 0.5);
  writer.finish();
  CHECK_FALSE(file.lacks(0.5));
  CHECK(file.lacks(0.6));
  CHECK(readModelNotes(path).at("by") == "a user");
  detail::BestFile resumed(path, {}, accuracy), anew(path, {}, accuracy);
  resumed.begin(network, true);
  CHECK_FALSE(resumed.lacks(0.5));
  anew.begin(network, false);
  CHECK(anew.lacks(0.1));
  CHECK_FALSE(detail::BestFile({}, {}, accuracy).wanted());
}

TEST_CASE("a best file refuses a model that is not a Network, a folder, and a note of its own name") {
  const TemporaryDirectory directory;
  EchoModel other;
  detail::BestFile file(directory / "best", {}, {.monitor = Monitor::Accuracy});
  CHECK_REFUSED(file.begin(other, false), "early stopping: bestFile needs a model that is a Network");
  MultiLayerNetwork network({.inputShape = {2}, .layers = {Dense{.units = 1}}});
  detail::BestFile folder(directory.path(), {}, {.monitor = Monitor::Accuracy});
  CHECK_THROWS_AS(folder.begin(network, false), FileError);
  const std::string note(detail::kBestValueNote);
  CHECK_REFUSED(detail::BestFile({}, {{note, "0"}}, {}), "early stopping: the note " + note + " is reserved");
}

}  // namespace muster::test
