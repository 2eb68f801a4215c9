#include "muster/core/listeners/detail/best_value_note.h"

#include "muster/core/io/model_file.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/support/test.h"

namespace muster::test {
namespace {

TEST_CASE("a model file's value is read if the note is of this monitor and a finite number") {
  const TemporaryDirectory directory;
  const auto file = directory.path() / "best.safetensors";
  MultiLayerNetwork network({.inputShape = {2}, .layers = {Dense{.units = 1}}});
  network.init();
  const Monitored loss{.monitor = Monitor::Loss}, accuracy{.monitor = Monitor::Accuracy};
  CHECK_FALSE(detail::readBestValue(file, loss).has_value());
  const auto valueOf = [&](const std::string& note) {
    saveModel(network, file, {{std::string(detail::kBestValueNote), note}});
    return detail::readBestValue(file, loss);
  };
  for (const double value : {0.1, -1e-300}) CHECK(valueOf(detail::bestValueNote(loss, value)) == value);
  for (const char* end : {"max: 0.1", "min: 0.1 ", "min: inf", "min: nan", "min: "})
    CHECK_MESSAGE(!valueOf(fmt::format("validation loss, {}", end)), end);
  for (const auto& note : {detail::bestValueNote(accuracy, 0.1), std::string()}) CHECK_FALSE(valueOf(note));
  network.save(file);
  CHECK_FALSE(detail::readBestValue(file, loss).has_value());
}

TEST_CASE("the note has the monitor, its mode and all digits of the value") {
  CHECK(detail::bestValueNote({.monitor = Monitor::Accuracy}, 0.98) == "validation accuracy, max: 0.98");
  CHECK(detail::bestValueNote({.monitor = Monitor::Own, .mode = MonitorMode::Min}, 1.0 / 3)
            .ends_with(", min: 0.3333333333333333"));
}

}  // namespace
}  // namespace muster::test
