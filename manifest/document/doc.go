// Package document strictly decodes YAML documents that people write. It decodes into Go types
// whose struct tags describe the allowed values, and reports all problems in one pass, with
// their lines. A Schema provides what depends on the kind of document.
//
//   - Parse limits the size of the text and returns the Document;
//   - Decode, Required and SetDefaults decode and complete a value;
//   - Remove and Put move a field from a second spelling to the first;
//   - Fail and Warn are for rules that check fields against each other.
//
// It imports no other package of this module.
package document
