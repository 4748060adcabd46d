"""Words that differ between wikis and are not in their exports.

An export's ``<siteinfo>`` names the namespaces, but not their aliases, the prefixes of other wikis,
and the words for "redirect" and "disambiguation". All tables are unions over languages: a word of
one language does not have another role in another language. So dumps with a missing or wrong
siteinfo can be read. All comparisons are casefolded.
"""

import re


def words(text: str) -> list[str]:
    """Names separated by white space. An underscore in a name means a space."""
    return [word.replace("_", " ") for word in text.split()]


# Names of namespaces that are valid in all wikis.
CANONICAL_NAMESPACES = {
    -2: "Media", -1: "Special", 1: "Talk", 2: "User", 3: "User talk", 4: "Project",
    5: "Project talk", 6: "File", 7: "File talk", 8: "MediaWiki", 9: "MediaWiki talk",
    10: "Template", 11: "Template talk", 12: "Help", 13: "Help talk", 14: "Category",
    15: "Category talk",
}  # fmt: skip
FILE, CATEGORY, TEMPLATE = 6, 14, 10

FILE_NAMES = words("""
    image archivo imagen fichier datei bild immagine bestand afbeelding ficheiro arquivo imagem
    plik grafika файл изображение зображення файла ملف صورة پرونده تصویر ファイル 画像 文件 档案 檔案 图像 圖像
    파일 그림 fil bilde kuva tiedosto soubor obrázok súbor fájl kép fișier imagine dosya resim
    berkas gambar imej tập_tin hình קובץ תמונה αρχείο εικόνα датотека слика datoteka slika
    fitxer imatge fitxategi irudi failas vaizdas attēls pilt dosiero चित्र ไฟล์ ภาพ ছবি படிமம்
    fayl şəkil сурет ფაილი სურათი պատկեր picha
""")

CATEGORY_NAMES = words("""
    categoría catégorie kategorie categoria categorie kategoria категория категорія تصنيف رده
    カテゴリ 分类 分類 분류 kategori kategoriya luokka kategória kategória kategorija категорија
    kategooria kategorio thể_loại קטגוריה κατηγορία श्रेणी หมวดหมู่ বিষয়শ্রেণী பகுப்பு санат
    კატეგორია կատեգորիա jamii زمرہ катэгорыя
""")

# Codes of Wikipedias. A link to one of them without a leading colon is not part of the text.
WIKIPEDIA_CODES = frozenset(
    words("""
    aa ab ace ady af ak als alt am ami an ang ar arc ary arz as ast atj av avk awa ay az azb ba
    ban bar bat-smg bbc bcl be be-tarask be-x-old bg bh bi bjn blk bm bn bo bpy br bs bug bxr ca
    cbk-zam cdo ce ceb ch cho chr chy ckb co cr crh cs csb cu cv cy da dag de dga din diq dsb
    dty dv dz ee el eml en eo es et eu ext fa fat ff fi fiu-vro fj fo fon fr frp frr fur fy ga
    gag gan gcr gd gl glk gn gom gor got gpe gu guc gur guw gv ha hak haw he hi hif ho hr hsb ht
    hu hy hyw hz ia id ie ig ii ik ilo inh io is it iu ja jam jbo jv ka kaa kab kbd kbp kcg kg
    ki kj kk kl km kn ko koi kr krc ks ksh ku kv kw ky la lad lb lbe lez lfn lg li lij lld lmo
    ln lo lrc lt ltg lv mad mai map-bms mdf mg mh mhr mi min mk ml mn mni mnw mo mr mrj ms mt
    mus mwl my myv mzn na nah nap nds nds-nl ne new ng nia nl nn no nb nov nqo nrm nso nv ny oc
    olo om or os pa pag pam pap pcd pcm pdc pfl pi pih pl pms pnb pnt ps pt pwn qu rm rmy rn ro
    roa-rup roa-tara ru rue rw sa sah sat sc scn sco sd se sg sh shi shn shy si simple sk skr sl
    sm smn sn so sq sr srn ss st stq su sv sw szl szy ta tay tcy te tet tg th ti tk tl tly tn to
    tpi tr trv ts tt tum tw ty tyv udm ug uk ur uz ve vec vep vi vls vo wa war wo wuu xal xh xmf
    yi yo za zea zh zh-classical zh-min-nan zh-yue zu
    """)
)

# Other wikis. A link to them is part of the text.
INTERWIKI_PREFIXES = frozenset(
    words("""
    w wikipedia wikt wiktionary s wikisource q wikiquote b wikibooks n wikinews v wikiversity
    voy wikivoyage species wikispecies c commons m meta metawikipedia d wikidata mw
    mediawikiwiki foundation wmf phab phabricator bugzilla incubator outreach oldwikisource
    wikia imdbname imdbtitle doi rfc google wikitech quality nost nostalgia sep11 tools toollabs
    toolforge gerrit irc mail ticket otrs
    """)
)

REDIRECT_WORDS = words("""
    redirect weiterleitung rinvia redirection redirección redireccion doorverwijzing
    redirecionamento patrz przekieruj tam перенаправление перенапр перенаправлення تحويل
    تغییر_مسیر تغییرمسیر 転送 リダイレクト 重定向 넘겨주기 omdirigering omdiriger omdirigere ohjaus
    uudelleenohjaus přesměruj presmeruj átirányítás redirecteaza yönlendirme yönlendi̇rme alih
    lencongan đổi הפניה ανακατευθυνση преусмери преусмјери пренасочване пренасочување виж
    preusmjeri preusmeri birzuzendu redirecció tilvísun suuna alidirektu alidirektilo
    nukreipimas pāradresēt peradresavimas перанакіраванне айдау athsheoladh ail-cyfeirio aoẓẓu
    리다이렉트 अनुप्रेषित पुनर्निर्देशन เปลี่ยนทาง გადამისამართება վերահղում istiqamətləndirmə
    aanstuur
""")

# Templates of disambiguation pages. Those of a dump with templates are found by
# ``pages.disambiguation_templates``.
DISAMBIGUATION_TEMPLATES = frozenset(
    words("""
    dab disamb disambig disambiguation hndis geodis human_name_disambiguation mathdab schooldis
    place_name_disambiguation airport_disambiguation numberdis
    letter-number_combination_disambiguation roaddis shipindex hospitaldis
    station_disambiguation disambiguation_cleanup callsigndis begriffsklärung bkl disambigua
    homonymie homonymes toponymie patronymie paronymie internationalisation_homonymes
    desambiguación desambigua des dp doorverwijspagina dpintro desambiguação desambig
    ujednoznacznienie неоднозначность многозначность неоднозначно неоднозначність توضيح
    ابهام‌زدایی 曖昧さ回避 aimai 人名の曖昧さ回避 地名の曖昧さ回避 消歧义 消歧義 disambig-cn 동음이의 동명이인 förgrening gren
    flertydig peker täsmennyssivu rozcestník rozlišovacia_stránka egyért dezambiguizare
    anlam_ayrımı disambiguasi nyahkekaburan trang_định_hướng định_hướng פירושונים αποσαφήνιση
    вишезначна_одредница пояснение појаснување višeznačnost razdvojba razločitev čvor
    desambiguació argipen aðgreining täpsustus täpsustuslehekülg nuorodinis nozīmju_atdalīšana
    apartigilo неадназначнасць бірнеше_мағына айрық მრავალმნიშვნელოვანი բազմիմաստություն
    dəqiqləşdirmə बहुविकल्पी_शब्द แก้กำกวม দ্ব্যর্থতা_নিরসন homónimos dubbelsinnig gwahaniaethu
    idirdhealú discretiva kthjellim razvrstavanje paglilinaw maana
    """)
)

DISAMBIGUATION_SUFFIXES = frozenset(
    words("""
    disambiguation begriffsklärung disambigua homonymie desambiguación doorverwijspagina
    desambiguação ujednoznacznienie значения значення توضيح ابهام‌زدایی 曖昧さ回避 消歧义 消歧義 동음이의
    olika_betydelser flertydig täsmennyssivu rozcestník rozlišovacia_stránka egyértelműsítő
    dezambiguizare anlam_ayrımı disambiguasi nyahkekaburan định_hướng פירושונים αποσαφήνιση
    вишезначна_одредница пояснение desambiguació argipen apartigilo
    """)
)

# Letters after ``]]`` that belong to the link. MediaWiki has one set per language. This is the union
# of their small letters (Han, Kana, Thai, Hangul and other scripts have none).
LINK_TRAIL = re.compile(
    "[a-zß-öø-ÿāăąćĉċčďđēĕėęěĝğġģĥħĩīĭįıĵķĺļľŀłńņňŋōŏőœŕŗřśŝşšţťŧũūŭůűųŵŷźżžșțơư"
    "ά-ώа-џґәғқңөұүһա-ևא-תء-يٱ-ۓ]+"
)
