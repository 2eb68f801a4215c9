#include "muster/parallel/inference/model_versions.h"

#include "muster/core/nn/multi_layer_network.h"
#include "tests/support/thrown.h"
#include "tests/support/toy_model.h"

using namespace muster;
using namespace muster::test;

namespace {

float parameter(ToyModel& model) {
  return model.parameters().front();
}

}  // namespace

TEST_CASE("replicas get the latest version, and only if they lack it") {
  ToyModel model;
  model.setParameters({3});
  ModelVersions versions(model);
  CHECK(versions.latest() == 1);
  ToyModel replica;
  std::int64_t has = 0;
  versions.bring(replica, has);
  CHECK(has == 1);
  CHECK(parameter(replica) == 3);
  replica.setParameters({8});
  versions.bring(replica, has);  // it has the latest
  CHECK(parameter(replica) == 8);
  model.setParameters({4});  // the user's model may change meanwhile
  CHECK(versions.publish(model) == 2);
  model.setParameters({5});
  versions.bring(replica, has);
  CHECK(has == 2);
  CHECK(parameter(replica) == 4);
}

TEST_CASE("an earlier version lives as long as its user") {
  ToyModel model;
  ModelVersions versions(model);
  const auto first = versions.model();
  model.setParameters({1});
  versions.publish(model);
  CHECK(first != versions.model());
  CHECK(first->iteration() == 0);
}

TEST_CASE("a model of another form is refused, and the version stays") {
  ToyModel model, larger({.size = 2});
  ModelVersions versions(model);
  CHECK(thrown<InvalidArgument>([&] {
          versions.publish(larger);
        }).starts_with("updateModel: the model is of another form: "));
  CHECK(versions.latest() == 1);
}

TEST_CASE(
    "a network is refused whose layers predict in another way, but not for names and what is of training") {
  const auto network = [](Activation activation, std::string name, double rate, Init init) {
    auto made = std::make_unique<MultiLayerNetwork>(MultiLayerConfiguration{
        .inputShape = {3},
        .layers = {Dense{.units = 4, .activation = activation, .init = init, .name = "hidden"},
                   Dropout{.rate = rate, .name = std::move(name)}, Output{.classes = 2}}});
    made->init();
    return made;
  };
  const auto served = network(Activation::Tanh, "drop", 0.5, Init::xavier());
  ModelVersions versions(*served);
  CHECK_REFUSED(
      versions.publish(*network(Activation::ReLU, "drop", 0.5, Init::xavier())),
      "updateModel: the model is of another form: its layer hidden has the activation relu, the served "
      "model's tanh");
  CHECK(versions.publish(*network(Activation::Tanh, "other", 0.1, Init::he())) == 2);
}
