#include "models/graphs/graph_check.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/api/error.h"
#include "models/graphs/testing/onnx_bytes.h"

namespace saccade::models {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::Message;
using testing::Number;

// y = x, float32 [1], where x has this name. `more` are fields of the graph.
std::string Identity(const std::string& x = "x", const std::string& more = "") {
  const std::string type =
      Message(2, Message(1, std::string("\x08\x01", 2) + Message(2, Message(1, "\x08\x01"))));
  const std::string node = Message(1, x) + Message(2, "y") + Message(4, "Identity");
  const std::string graph = Message(1, node) + Message(2, "g") + Message(11, Message(1, x) + type) +
                            Message(12, Message(1, "y") + type) + more;
  return std::string("\x08\x08", 2) + Message(7, graph) + Message(8, "\x10\x11");
}

class GraphCheckTest : public ::testing::Test {
 protected:
  GraphCheckTest() : path_(fs::path(::testing::TempDir()) / "graph_check.onnx") {
    std::ofstream(path_, std::ios::binary) << Identity();
  }
  ~GraphCheckTest() override { fs::remove(path_); }

  std::string Outcome(const GraphCheckLimits& limits) const { return OutcomeOf(path_, "", limits); }

  static std::string OutcomeOf(const fs::path& path, const fs::path& repository,
                               const GraphCheckLimits& limits = {}) {
    try {
      CheckGraphFile(path, repository, limits);
    } catch (const LoadError& error) {
      return error.what();
    }
    return "OK";
  }

  const fs::path path_;
};

TEST_F(GraphCheckTest, AGraphWithinTheLimitsPasses) { EXPECT_EQ(Outcome({}), "OK"); }

TEST_F(GraphCheckTest, AnInputWhoseNameIsNoLineIsRefused) {
  for (const std::string& name : {std::string("x\0", 2), std::string("\0", 1), std::string("x\ny")}) {
    std::ofstream(path_, std::ios::binary) << Identity(name);
    EXPECT_THAT(Outcome({}), HasSubstr("has a name that is empty or contains a NUL or a line feed")) << name;
  }
}

TEST_F(GraphCheckTest, ACheckThatTakesTooLongIsGivenUp) {
  EXPECT_THAT(Outcome({.seconds = 0}), HasSubstr("had not read and compiled the file after 0 s"));
}

TEST_F(GraphCheckTest, ACheckThatNeedsTooMuchMemoryFails) {
  // Enough for the process, but not for the libraries.
  EXPECT_NE(Outcome({.memory_bytes = 4096}), "OK");
  EXPECT_NE(Outcome({.memory_bytes = uint64_t{64} << 20}), "OK");
}

// An initializer, float32 [bytes / 4], whose values are in the file graph_check.bin.
std::string InGraphCheckBin(int number, uint64_t bytes) {
  const auto entry = [](const std::string& key, const std::string& value) {
    return Message(13, Message(1, key) + Message(2, value));
  };
  return Message(5, Number(1, bytes / 4) + Number(2, 1) + Message(8, "w" + std::to_string(number)) +
                        entry("location", "graph_check.bin") + entry("offset", "0") +
                        entry("length", std::to_string(bytes)) + Number(14, 1));
}

class SharedDataTest : public GraphCheckTest {
 protected:
  ~SharedDataTest() override { fs::remove(data_); }

  // A graph of which so many tensors have all the values of a file of this size.
  void Write(int tensors, uint64_t bytes) const {
    std::ofstream(data_, std::ios::binary).flush();
    fs::resize_file(data_, bytes);
    std::string initializers;
    for (int i = 0; i < tensors; ++i) initializers += InGraphCheckBin(i, bytes);
    std::ofstream(path_, std::ios::binary) << Identity("x", initializers);
  }

  const fs::path data_ = fs::path(::testing::TempDir()) / "graph_check.bin";
};

TEST_F(SharedDataTest, AFileCountsOnceForTheLimitOfMemory) {
  Write(256, 1 << 20);
  EXPECT_EQ(Outcome({}), "OK");
  // 8 times the file is too little for the libraries; 8 times all references would be 2 GiB.
  EXPECT_NE(Outcome({.memory_bytes = 4096}), "OK");
}

TEST_F(SharedDataTest, ReferencesAreBoundedTogether) {
  Write(65, uint64_t{1} << 30);
  EXPECT_THAT(Outcome({}), HasSubstr("more than 68719476736 bytes of external data"));
}

// y = x + 1, float32 [1], whose 1 is in the .bin file.
constexpr char kAddition[] = R"(<net name="g" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data shape="1" element_type="f32"/>
<output><port id="0" precision="FP32" names="x"><dim>1</dim></port></output></layer>
<layer id="1" name="w" type="Const" version="opset1"><data element_type="f32" shape="1" offset="0" size="4"/>
<output><port id="0" precision="FP32"><dim>1</dim></port></output></layer>
<layer id="2" name="add" type="Add" version="opset1"><data auto_broadcast="numpy"/>
<input><port id="0"><dim>1</dim></port><port id="1"><dim>1</dim></port></input>
<output><port id="2" precision="FP32" names="y"><dim>1</dim></port></output></layer>
<layer id="3" name="r" type="Result" version="opset1"><input><port id="0"><dim>1</dim></port></input></layer>
</layers><edges><edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>
<edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>
<edge from-layer="2" from-port="2" to-layer="3" to-port="0"/></edges></net>)";
constexpr std::string_view kOne("\0\0\x80\x3f", 4);

// A repository whose model/1/ has links alone, into a folder of files without endings.
class LinkedGraphTest : public GraphCheckTest {
 protected:
  LinkedGraphTest()
      : root_(fs::path(::testing::TempDir()) / "linked_graph"), version_(root_ / "model" / "1") {
    fs::remove_all(root_);
    Write("blobs/graph", kAddition);
    Write("blobs/weights", kOne);
    fs::create_directories(version_);
    fs::create_symlink("../../blobs/graph", version_ / "model.xml");
  }
  ~LinkedGraphTest() override { fs::remove_all(root_); }

  void Write(const std::string& file, std::string_view bytes) const {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file, std::ios::binary) << bytes;
  }

  const fs::path root_;
  const fs::path version_;
};

TEST_F(LinkedGraphTest, AnXmlFileAndItsWeightsMayBeLinksIntoTheRepository) {
  fs::create_symlink("../../blobs/weights", version_ / "model.bin");
  EXPECT_EQ(OutcomeOf(version_ / "model.xml", root_), "OK");
}

TEST_F(LinkedGraphTest, WeightsThatLeadOutOfTheRepositoryAreRefused) {
  fs::create_symlink("../../blobs/weights", version_ / "model.bin");
  for (const fs::path& repository : {root_ / "model", fs::path()}) {
    EXPECT_THAT(OutcomeOf(version_ / "model.xml", repository),
                HasSubstr("'model.bin' leads out of the model repository"))
        << repository;
  }
}

TEST_F(LinkedGraphTest, TheWeightsAreThoseBesideTheLink) {
  Write("blobs/model.xml", kAddition);
  Write("blobs/model.bin", kOne);
  fs::remove(version_ / "model.xml");
  fs::create_symlink("../../blobs/model.xml", version_ / "model.xml");
  EXPECT_THAT(OutcomeOf(version_ / "model.xml", root_), HasSubstr("'model.bin' is missing"));
  Write("model/1/model.bin", "\1\1");
  EXPECT_THAT(OutcomeOf(version_ / "model.xml", root_), HasSubstr("OpenVINO does not take the file"));
}

}  // namespace
}  // namespace saccade::models
