"""What a bucket holds: keys, records, event segments and log packs. The contract is docs/storage-layout.md."""
