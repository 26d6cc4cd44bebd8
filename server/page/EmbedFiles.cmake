# Usage: cmake -DOUT=files.cc -P EmbedFiles.cmake. Writes this folder's files as the strings that files.h
# declares.
function(embed name file)
  file(READ ${CMAKE_CURRENT_LIST_DIR}/${file} hex HEX)
  string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${hex}")
  file(APPEND ${OUT} "constexpr char k${name}Bytes[] = {${bytes}};\n"
    "const std::string_view k${name}(k${name}Bytes, sizeof(k${name}Bytes));\n")
endfunction()

file(WRITE ${OUT} "#include \"server/page/files.h\"\n\nnamespace saccade::server::page {\n\n")
embed(IndexHtml index.html)
embed(PageCss page.css)
embed(PageJs page.js)
embed(AttentionJs attention.js)
embed(ClipJs clip.js)
embed(FindingsJs findings.js)
embed(LoadJs load.js)
embed(OverlayJs overlay.js)
embed(RequestJs request.js)
embed(TiffJs tiff.js)
embed(TokenJs token.js)
embed(VolumeJs volume.js)
embed(IconSvg icon.svg)
file(APPEND ${OUT} "\n}  // namespace saccade::server::page\n")
