// Precompiled headers need a source file to belong to.
