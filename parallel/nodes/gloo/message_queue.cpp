#include "muster/parallel/nodes/gloo/message_queue.h"

#include <chrono>
#include <utility>

#include <gloo/transport/context.h>
#include <gloo/transport/unbound_buffer.h>

namespace muster {
namespace {

/// Longer than any training waits. NodeLink's heartbeats detect a silent node.
constexpr std::chrono::hours kForEver{100};

}  // namespace

bool Outcomes::take(std::vector<int>& tickets, const std::function<void(int)>& hear) {
  const Lock lock(mutex_);
  const bool any = !done_.empty();
  for (const Done& one : done_) {
    tickets.push_back(one.ticket);
    if (one.received) hear(one.node);
  }
  done_.clear();
  return any;
}

std::optional<Outcomes::Loss> Outcomes::nextLoss() {
  const Lock lock(mutex_);
  if (problem_) std::rethrow_exception(problem_);
  if (losses_.empty()) return {};
  std::optional<Loss> loss = std::move(losses_.front());
  losses_.pop_front();
  return loss;
}

MessageQueue::MessageQueue(std::shared_ptr<gloo::transport::Context> context, Outcomes& outcomes)
    : context_(std::move(context)), outcomes_(outcomes), thread_([this] { run(); }) {}

MessageQueue::~MessageQueue() {
  {
    const Lock lock(mutex_);
    ending_ = true;
    for (const Transfer& transfer : transfers_)
      for (auto* const part : {transfer.head.get(), transfer.body.get()}) {
        if (!part) continue;
        part->abortWaitRecv();
        part->abortWaitSend();
      }
    changed_.notify_all();
  }
  thread_.join();
}

void MessageQueue::begin(const NodeMessage& message, int ticket) {
  const Lock lock(mutex_);
  const auto& bytes = message.bytes;
  const Announcement announced{.channel = message.channel, .bytes = static_cast<std::int64_t>(bytes.size())};
  transfers_.push_back(Transfer{.message = message, .ticket = ticket, .announcement = announced});
  Transfer& transfer = transfers_.back();
  transfer.head = context_->createUnboundBuffer(&transfer.announcement, sizeof(Announcement));
  transfer.body = context_->createUnboundBuffer(bytes.data(), bytes.size());
  const auto headName = static_cast<std::uint64_t>(message.channel) << 32U,
             bodyName = headName | bytes.size();
  if (message.way == NodeMessage::Way::Send) {
    transfer.head->send(message.node, headName);
    transfer.body->send(message.node, bodyName);
  } else {
    transfer.head->recv(message.node, headName);
    transfer.body->recv(message.node, bodyName);
  }
  changed_.notify_all();
}

void MessageQueue::requireExpected(const NodeMessage& message, const Announcement& announced) {
  const Announcement expected;
  if (announced.magic != expected.magic || announced.channel != message.channel)
    throw NodeFailure(fmt::format("node {} has sent bytes that are not a message of muster", message.node));
  const auto bytes = static_cast<std::int64_t>(message.bytes.size());
  if (announced.bytes != bytes)
    throw NodeFailure(fmt::format("node {} has sent {} bytes where {} were expected", message.node,
                                  announced.bytes, bytes));
}

void MessageQueue::run() {
  for (;;) {
    Transfer* transfer = nullptr;
    {
      Lock lock(mutex_);
      while (!ending_ && transfers_.empty()) changed_.wait(lock.native());
      if (ending_) return;
      transfer = &transfers_.front();  // others are added after it, and only this thread removes it
    }
    const auto& [message, ticket, announced, head, body] = *transfer;
    const bool received = message.way == NodeMessage::Way::Receive;
    const auto wait = [received](gloo::transport::UnboundBuffer& part) {
      return received ? part.waitRecv(nullptr, kForEver) : part.waitSend(nullptr, kForEver);
    };
    try {
      if (!wait(*head)) return;
      if (received) requireExpected(message, announced);
      if (!wait(*body)) return;
    } catch (const NodeFailure&) {
      return outcomes_.failed(std::current_exception());
    } catch (const std::exception& error) {
      return outcomes_.lost(message.node, error.what());
    }
    const int doneTicket = ticket, node = message.node;
    {
      const Lock lock(mutex_);
      transfers_.pop_front();
    }
    outcomes_.done(doneTicket, node, received);
  }
}

}  // namespace muster
