# The disk that each host gets a copy of: nearly all of it is a hole.
rm -f "$out.img.part"
truncate -s 40G "$out.img.part"
mkfs.ext4 -q -F -m 0 -L lab -E lazy_itable_init=1,lazy_journal_init=1,nodiscard,hash_seed=00000000-0000-0000-0000-000000000001 -d "$out" "$out.img.part"
mv "$out.img.part" "$out.img"
